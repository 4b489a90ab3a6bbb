#include "codegen/machine/register_allocator.h"

#include <algorithm>

namespace cortiq::codegen {
namespace {

/// Positions of a loop: its loop_begin and loop_end.
struct LoopSpan {
  int32_t begin, end;
};

class Builder {
public:
  explicit Builder(const MachineFunction& function) : function_(function), intervals_(function.vregs.size()) {
    find_loops();
  }

  std::vector<LiveInterval> run() {
    for (VReg reg = 0; reg < intervals_.size(); ++reg)
      intervals_[reg].reg = reg;
    for (int32_t i = 0; i < static_cast<int32_t>(function_.code.size()); ++i)
      visit(i);
    for (LiveInterval& interval : intervals_)
      interval.weight /= static_cast<float>(interval.end - interval.start + 4);
    return std::move(intervals_);
  }

private:
  void find_loops() {
    spans_.resize(function_.loops);
    for (int32_t i = 0; i < static_cast<int32_t>(function_.code.size()); ++i) {
      const Instruction& instruction = function_.code[i];
      if (instruction.kind == InstructionKind::kLoopBegin)
        spans_[instruction.loop].begin = 2 * i;
      else if (instruction.kind == InstructionKind::kLoopEnd)
        spans_[instruction.loop].end = 2 * i + 1;
    }
  }

  void visit(int32_t i) {
    const Instruction& instruction = function_.code[i];
    const bool late = instruction.rules && instruction.rules->early_result;
    const int8_t tied = instruction.rules ? instruction.rules->tied : -1;
    for (int operand = 0; operand < kMaxOperands; ++operand) {
      // A result that shares the tied operand's register is written by a copy first: the others must outlive that.
      const bool outlives = late || (tied >= 0 && operand != tied);
      read(instruction.uses[operand], 2 * i + (outlives ? 1 : 0));
    }
    // A loop_begin reads counter and limit outside of its loop.
    if (instruction.kind == InstructionKind::kLoopBegin) {
      open_.push_back(instruction.loop);
      // Carried registers meet at the loop's entry, so that no two of them share one.
      for (VReg reg = 0; reg < intervals_.size(); ++reg)
        if (function_.vregs[reg].carried_by == instruction.loop)
          intervals_[reg].end = std::max(intervals_[reg].end, 2 * i + 2);
    }
    read(instruction.mem.base, 2 * i + (late || tied >= 0 ? 1 : 0));
    read(instruction.mem.index, 2 * i + (late || tied >= 0 ? 1 : 0));
    for (const auto& [to, from] : instruction.moves)
      read(from, 2 * i);
    write(instruction.def, 2 * i + 1);
    for (const auto& [to, from] : instruction.moves)
      write(to, 2 * i + 1);
    for (VReg scratch : instruction.scratch) {
      if (scratch != kNoReg)
        intervals_[scratch].start = 2 * i;
      read(scratch, 2 * i + 1);
    }
    if (instruction.kind == InstructionKind::kLoopEnd)
      open_.pop_back();
  }

  void write(VReg reg, int32_t position) {
    if (reg == kNoReg)
      return;
    LiveInterval& interval = intervals_[reg];
    if (interval.start < 0 && interval.end < 0)
      interval.start = position;
    // The moves of its loop_end refill a carried register. Between its last read and them it is dead, and whatever
    // lives there either ends with them or was live at the loop's entry too: the interval isn't stretched.
    if (function_.vregs[reg].carried_by == kNoLoop || position <= interval.start)
      interval.end = std::max(interval.end, position + 1);
    interval.weight += access_weight();
  }

  void read(VReg reg, int32_t position) {
    if (reg == kNoReg)
      return;
    LiveInterval& interval = intervals_[reg];
    const uint32_t carried_by = function_.vregs[reg].carried_by;
    int32_t end = position + 1;
    for (uint32_t loop : open_)
      if (interval.start < spans_[loop].begin && loop != carried_by) {
        end = std::max(end, spans_[loop].end + 1);
        break; // the outermost such loop ends last
      }
    // The moves after its loop read a carried register right where the loop's last moves wrote it.
    if (carried_by != kNoLoop && position > spans_[carried_by].end)
      end = interval.end;
    interval.end = std::max(interval.end, end);
    interval.weight += access_weight();
  }

  float access_weight() const {
    float weight = 1;
    for (size_t depth = 0; depth < open_.size() && depth < 6; ++depth)
      weight *= 10;
    return weight;
  }

  const MachineFunction& function_;
  std::vector<LiveInterval> intervals_;
  std::vector<LoopSpan> spans_;
  std::vector<uint32_t> open_;
};

} // namespace

std::vector<LiveInterval> live_intervals(const MachineFunction& function) {
  return Builder(function).run();
}

} // namespace cortiq::codegen
