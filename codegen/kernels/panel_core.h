#pragma once

// The materialised path: a row group is decoded once a call into a panel, for any number of tokens (panel_core.cpp says
// how). It serves both arms on every target.

#include <memory>

#include "codegen/kernels/chunk_core.h"

namespace cortiq::codegen {

class PanelCore {
public:
  /// `c.tokens` holds token 0; `args` is the argument block.
  PanelCore(CoreContext& c, Value args, Value scratch);

  /// One row group for all tokens: decoding, sums and epilogue.
  void run(Address group, const SumsCore::Output& output);

private:
  void decode(Address group);
  void decode_codes(const RecordPlace& place);
  void decode_floats(const RecordPlace& place);
  void multiply();
  void epilogue(const SumsCore::Output& output);

  CoreContext& c_;
  Emit& e_;
  const Geometry g_;
  const bool fast_;
  const unsigned span_;     ///< weights that share a scale
  const int64_t row_bytes_; ///< of one number of every row
  KernelSpec spec_;         ///< of the panel as a matrix: whole vectors of rows
  formats::R16Format format_;
  std::unique_ptr<Decoder> decoder_; ///< reads the panel
  Value tokens_, act_stride_, out_stride_, residual_stride_;
  Value sums_, panel_; ///< parts of the scratch
};

} // namespace cortiq::codegen
