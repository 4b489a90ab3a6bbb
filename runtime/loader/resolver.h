#pragma once

// Turns indices of the artifact's tables into addresses, checking each on the way. Every operation's resolve function
// takes its references from here, so that no unchecked number reaches a call.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "formats/artifact/kernel_abi.h"
#include "formats/codec/codec.h"
#include "formats/layout/layout.h"
#include "formats/status.h"
#include "runtime/executor/program.h"

namespace cortiq::runtime {

inline constexpr uint32_t kNoIndex = 0xffffffff;

/// A weight of the table: extent, codec, layout and shape were checked against each other.
struct WeightRef {
  const artifact::Weight* entry = nullptr;
  const formats::Codec* codec = nullptr;
  formats::LayoutId layout{};
  uint64_t rows = 0, cols = 0;
  std::span<const uint8_t> bytes;
  uint64_t tensor_bytes = 0; ///< tensor part in front of the row groups
  bool mixed = false;        ///< of others, at run time: there are no bytes in the artifact
  uint64_t row_bytes = 0;    ///< a group of R rows has R * row_bytes; 0 when rows are not addressable
};

struct KernelRef {
  const artifact::Kernel* entry = nullptr;
  formats::KernelFn function = nullptr;
};

class Resolver {
public:
  const artifact::Program* program = nullptr;
  uint64_t max_batch = 0;
  std::vector<WeightRef> weights;
  std::vector<KernelRef> kernels;
  std::vector<SlotRef> slots;
  /// How often each slot of f32 values was asked for, if anybody wants to know.
  std::vector<uint32_t>* uses = nullptr;
  /// Gives the bytes of a weight that is mixed at run time. Without it such weights are refused: only what runs under a
  /// blend may name them.
  std::function<StatusOr<std::span<const uint8_t>>(uint32_t index)> mix;

  /// A slot of f32 values; fails when absent, of another kind or without `elements` elements. `what` names the use.
  StatusOr<SlotRef> f32_slot(uint32_t index, uint64_t elements, const char* what) const;
  StatusOr<SlotRef> q8_slot(uint32_t index, uint64_t elements, const char* what) const;
  StatusOr<SlotRef> i32_slot(uint32_t index, uint64_t elements, const char* what) const;
  /// The same for a run of columns inside a wider slot.
  StatusOr<SlotRef> f32_columns(uint32_t index, uint64_t column, uint64_t elements, const char* what) const;
  /// Elements of slot `index`, whatever its kind.
  StatusOr<uint64_t> slot_elements(uint32_t index, const char* what) const;
  artifact::BufferKind kind(uint32_t index) const;
  /// Quantized activations, with the same in bf16 behind them or not.
  bool is_q8(uint32_t index) const;
  /// Bytes of such a slot's records of `k` activations.
  uint64_t q8_record_bytes(uint32_t index, uint64_t k) const;

  StatusOr<WeightRef> weight(uint32_t index, const char* what) const;
  /// A verbatim f32 vector of `elements` elements.
  StatusOr<const float*> vector(uint32_t index, uint64_t elements, const char* what) const;
  StatusOr<KernelRef> kernel(uint32_t index, const char* what) const;
};

} // namespace cortiq::runtime
