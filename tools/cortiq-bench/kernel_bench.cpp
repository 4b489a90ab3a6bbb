#include "tools/cortiq-bench/kernel_bench.h"

#include <charconv>
#include <cstring>
#include <vector>

#include "formats/atomic_file.h"
#include "formats/input_files.h"
#include "formats/mapped_file.h"
#include "formats/quote.h"
#include "runtime/session/session.h"
#include "tools/cortiq-bench/compiled_artifact.h"

namespace cortiq::bench {
namespace {

StatusOr<uint64_t> columns_of(const std::string& shape) {
  const size_t x = shape.find('x');
  uint64_t columns = 0;
  const char* end = shape.data() + shape.size();
  if (x == std::string::npos || std::from_chars(shape.data() + x + 1, end, columns).ptr != end || columns == 0)
    return invalid("--shape is ROWSxCOLS, not " + formats::quote(shape));
  return columns;
}

} // namespace

Status bench_kernel(const KernelBenchOptions& options) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t columns, columns_of(options.shape));
  CORTIQ_ASSIGN_OR_RETURN(const formats::MappedFile inputs, formats::MappedFile::open(options.x));
  const uint64_t rows = inputs.bytes().size() / (columns * sizeof(float));
  if (rows == 0 || inputs.bytes().size() != rows * columns * sizeof(float))
    return invalid(formats::quote(options.x) + " has " + std::to_string(inputs.bytes().size()) +
                   " bytes, not rows of " + std::to_string(columns) + " float32 values");
  std::vector<float> x(rows * columns);
  std::memcpy(x.data(), inputs.bytes().data(), inputs.bytes().size());

  formats::remember_input(options.weights); // the compiler reads it
  CORTIQ_RETURN_IF_ERROR(formats::check_output(options.out));
  std::vector<std::string> arguments = {"--gemv",
                                        options.codec,
                                        "--shape",
                                        options.shape,
                                        "--weights",
                                        options.weights,
                                        "--numerics=" + options.numerics};
  if (!options.target.empty())
    arguments.push_back("--target=" + options.target);
  CORTIQ_ASSIGN_OR_RETURN(const CompiledArtifact artifact, CompiledArtifact::compile(std::move(arguments)));

  CORTIQ_ASSIGN_OR_RETURN(const auto model, runtime::Model::load(artifact.path(), {}));
  runtime::SessionOptions how;
  how.threads = options.threads;
  CORTIQ_ASSIGN_OR_RETURN(const auto session, runtime::Session::create(model, how));
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile out, formats::AtomicFile::create(options.out));
  for (uint64_t done = 0; done < rows;) {
    const uint64_t count = std::min(rows - done, model->info().max_batch);
    CORTIQ_ASSIGN_OR_RETURN(const auto y,
                            session->run_vectors(std::span(x).subspan(done * columns, count * columns), count));
    CORTIQ_RETURN_IF_ERROR(out.write({reinterpret_cast<const uint8_t*>(y.data()), y.size_bytes()}));
    done += count;
  }
  return out.commit();
}

} // namespace cortiq::bench
