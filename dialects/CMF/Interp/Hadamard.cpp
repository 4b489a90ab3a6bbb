#include <algorithm>
#include <cmath>

#include "dialects/CMF/Interp/OpTable.h"
#include "llvm/ADT/APFloat.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

double toHalf(double x) {
  llvm::APFloat value(static_cast<float>(x));
  bool inexact;
  value.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  value.convert(llvm::APFloat::IEEEsingle(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return value.convertToFloat();
}

/// Entry (i, j) of the Hadamard matrix is -1 where i and j have an odd number of common bits. The sums of halves and
/// differences below are that product.
void transform(std::vector<double>& x) {
  if (x.size() == 1)
    return;
  const size_t half = x.size() / 2;
  std::vector<double> sums(half), differences(half);
  for (size_t i = 0; i < half; ++i) {
    sums[i] = x[i] + x[half + i];
    differences[i] = x[i] - x[half + i];
  }
  transform(sums);
  transform(differences);
  std::copy(sums.begin(), sums.end(), x.begin());
  std::copy(differences.begin(), differences.end(), x.begin() + half);
}

} // namespace

Status referenceHadamard(Operation* op, Frame& frame) {
  auto hadamard = cast<HadamardOp>(op);
  const Array& x = frame.value(hadamard.getX());
  const ArrayRef<bool> negative = hadamard.getNegative();
  const int64_t block = hadamard.getBlock();
  const bool inverse = hadamard.getInverse(), half = hadamard.getHalf();
  auto rounded = [&](double v) { return half ? toHalf(v) : v; };
  auto sign = [&](int64_t column) { return negative[column] ? -1.0 : 1.0; };
  Array out(x.rows, x.cols);
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t start = 0; start < x.cols; start += block) {
      std::vector<double> values(block);
      for (int64_t i = 0; i < block; ++i)
        values[i] = inverse ? rounded(x.row(t)[start + i]) : x.row(t)[start + i] * sign(start + i);
      transform(values);
      for (int64_t i = 0; i < block; ++i) {
        const double y = values[i] / std::sqrt(static_cast<double>(block));
        out.row(t)[start + i] = static_cast<float>(rounded(inverse ? y * sign(start + i) : y));
      }
    }
  frame.set(hadamard.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
