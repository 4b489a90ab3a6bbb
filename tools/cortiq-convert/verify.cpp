#include "tools/cortiq-convert/verify.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "formats/cmf/cmf_file.h"
#include "formats/encode/row_planes.h"
#include "formats/page_release.h"
#include "formats/quote.h"
#include "tools/cortiq-convert/tensor_rows.h"

namespace cortiq::convert {

using formats::quote;
using formats::Tensor;

namespace {

constexpr uint64_t kMostPages = 64 << 20; // bytes of the result between two releases

/// Equal bits; of NaNs only that both are, for which one a conversion gives is the machine's choice.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  if (std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0)
    return true;
  for (size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0 && !(std::isnan(a[i]) && std::isnan(b[i])))
      return false;
  return true;
}

StatusOr<double> compare(const Target& target, const Tensor& written, unsigned threads) {
  const TensorRows source(*target.source);
  const uint64_t rows = source.rows(), cols = source.cols();
  std::vector<double> errors(rows), squares(rows); // by row, so that the sums do not depend on the threads
  std::atomic<bool> differs = false, nonfinite = false;
  const auto compare_row = [&](uint64_t row) {
    const std::vector<float> before = source.row(row);
    std::vector<float> after(cols);
    written.codec->decode_row(written.data.data(), rows, cols, row, after.data());
    if (target.lossless) {
      if (!same(before, after))
        differs = true;
      return;
    }
    for (uint64_t i = 0; i < cols; ++i) {
      const double error = static_cast<double>(after[i]) - before[i];
      errors[row] += error * error;
      squares[row] += static_cast<double>(before[i]) * before[i];
      if (!std::isfinite(after[i]))
        nonfinite = true;
    }
  };
  const uint64_t step = std::max<uint64_t>(kMostPages / std::max<uint64_t>(written.data.size() / rows, 1), 1);
  for (uint64_t first = 0; first < rows; first += step) {
    formats::for_each_row(first, std::min(step, rows - first), threads, compare_row);
    formats::release_pages(written.data);
  }
  if (differs)
    return internal_error("tensor " + quote(target.source->name) + " does not decode to the source's values as " +
                          std::string(written.codec->name));
  if (nonfinite)
    return unsupported("tensor " + quote(target.source->name) + " has values too large for " +
                       std::string(written.codec->name) + "; choose another codec for it with --tensor-quant");
  double error = 0, square = 0;
  for (uint64_t row = 0; row < rows; ++row) {
    error += errors[row];
    square += squares[row];
  }
  return square > 0 ? std::sqrt(error / square) : 0.0;
}

} // namespace

StatusOr<std::vector<ConvertedTensor>> verify_output(const std::string& path, const std::vector<Target>& targets,
                                                     unsigned threads, const std::function<void(double)>& progress) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::CmfFile file, formats::CmfFile::open(path));
  CORTIQ_RETURN_IF_ERROR(file.check_runnable());
  CORTIQ_RETURN_IF_ERROR(file.verify());
  std::vector<ConvertedTensor> out;
  for (const Target& target : targets) {
    const Tensor* written = file.find(target.source->name);
    if (!written || written->codec != target.codec || written->shape != target.source->shape)
      return internal_error("tensor " + quote(target.source->name) + " was not written as planned");
    CORTIQ_ASSIGN_OR_RETURN(const double error, compare(target, *written, threads));
    out.push_back({target.source->name, std::string(target.source->tensor->codec->name),
                   std::string(target.codec->name), target.lossless && !target.source->value, error});
    formats::release_pages(written->data);
    formats::release_pages(target.source->tensor->data);
    progress(static_cast<double>(out.size()) / static_cast<double>(targets.size()));
  }
  return out;
}

} // namespace cortiq::convert
