#pragma once

// What cores for a varying number of tokens share that keep sums in memory (chunk_core.h, bf16_core.h):
//   f32 sums[row groups][tokens][16]
// in scratch, and the results made of them.

#include "codegen/kernels/core.h"
#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {

class SumsCore {
public:
  virtual ~SumsCore() = default;

  /// What stands in front of and behind the work of a call.
  virtual void begin_call() {}
  virtual void end_call() {}

  /// Sums of all row groups, of which the first stands at `weights`, the next `group_bytes` further, and tokens.
  virtual void run(Value weights, int64_t group_bytes) = 0;

  /// Where a row group's results go; `residual` and `bias` are null where the kernel has none.
  struct Output {
    Value out, residual, bias;
  };
  /// Where the first row group's sums stand, and the next one's behind those at `sums`.
  Value first_sums() const { return sums_; }
  Value next_sums(Value sums) { return e_.offset(sums, sums_bytes_); }
  virtual void epilogue(Address group, Value sums, const Output& output);

protected:
  static constexpr int64_t kRowBytes = 64; ///< of a number of 16 rows

  /// `c.tokens` holds token 0; `args` is the argument block.
  SumsCore(CoreContext& c, Value args);

  CoreContext& c_;
  Emit& e_;
  const Geometry g_;
  const int64_t sums_bytes_; ///< of a row group
  Value groups_, tokens_, out_stride_, residual_stride_;
  Value sums_;
};

} // namespace cortiq::codegen
