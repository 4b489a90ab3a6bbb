#pragma once

// Runs single operations of a program on an arena, without an artifact.

#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/ops/op.h"

namespace cortiq::runtime {

/// Slots laid one behind the other, each for `max_batch` tokens, and calls made of schema rows.
class OpRunner {
public:
  explicit OpRunner(uint64_t max_batch) : max_batch_(max_batch) { resolver.max_batch = max_batch; }

  uint32_t slot(uint64_t elements, artifact::BufferKind kind = artifact::BufferKind::F32, uint32_t records = 1) {
    const uint64_t bytes = records * (kind == artifact::BufferKind::Q8Act ? formats::q8_act_layout(elements).bytes
                                                                          : formats::f32_act_bytes(elements));
    program_.buffers.push_back(std::make_unique<artifact::BufferT>());
    program_.buffers.back()->kind = kind;
    program_.buffers.back()->elements = elements;
    program_.buffers.back()->records = records;
    program_.buffers.back()->bytes_per_token = bytes;
    resolver.slots.push_back({arena_bytes_, bytes, elements, true});
    arena_bytes_ += bytes * max_batch_;
    return static_cast<uint32_t>(resolver.slots.size() - 1);
  }

  /// A stage of its own for the operation.
  template <class OpT>
  void stage(OpT op) {
    program_.stages.push_back(std::make_unique<artifact::StageT>());
    auto call = std::make_unique<artifact::CallT>();
    call->op.Set(std::move(op));
    program_.stages.back()->calls.push_back(std::move(call));
  }

  /// Makes the calls; the first failure.
  Status resolve() {
    builder_.Finish(artifact::Program::Pack(builder_, &program_));
    resolver.program = flatbuffers::GetRoot<artifact::Program>(builder_.GetBufferPointer());
    arena_.assign(arena_bytes_ + 64, 0);
    uint64_t scratch = 64;
    for (const artifact::Stage* stage : *resolver.program->stages())
      for (const artifact::Call* call : *stage->calls())
        for (const OpRow& row : op_table())
          if (row.op == call->op_type())
            CORTIQ_RETURN_IF_ERROR(row.resolve(*call, resolver, facts_, calls_));
    for (const auto& call : calls_)
      scratch = std::max(scratch, call->scratch_bytes());
    scratch_.resize(scratch + 64);
    return {};
  }

  float* f32(uint32_t slot, uint64_t token) { return resolver.slots[slot].f32(arena(), token); }
  uint8_t* bytes(uint32_t slot, uint64_t token) { return resolver.slots[slot].bytes(arena(), token); }

  /// Runs every call on tokens [first, first + count), items one by one from the last to the first: their order must
  /// not matter.
  void run(uint64_t first, uint64_t count, unsigned threads = 1) {
    StepContext step;
    step.arena = arena();
    step.missing_experts = missing_experts;
    const StepShape shape{first, count, threads};
    uint8_t* scratch = scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64;
    for (const auto& call : calls_)
      for (uint64_t item = call->items(shape); item-- > 0;)
        call->run(step, shape, item, item + 1, scratch);
  }

  /// What resolve() found and what operations resolve against; for those that need more than slots.
  ProgramFacts& facts() { return facts_; }
  const CallList& calls() const { return calls_; }
  uint8_t* scratch() { return scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64; }
  uint8_t* arena() { return arena_.data() + (64 - reinterpret_cast<uintptr_t>(arena_.data()) % 64) % 64; }

  bool missing_experts = false; ///< as in StepContext
  Resolver resolver;

private:
  uint64_t max_batch_, arena_bytes_ = 0;
  artifact::ProgramT program_;
  flatbuffers::FlatBufferBuilder builder_;
  std::vector<uint8_t> arena_, scratch_;
  ProgramFacts facts_;
  CallList calls_;
};

} // namespace cortiq::runtime
