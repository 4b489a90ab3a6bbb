#include "codegen/machine/register_allocator.h"

#include "codegen/machine/spill.h"

#include <algorithm>
#include <bitset>
#include <limits>

namespace cortiq::codegen {
namespace {

/// One pass over the intervals: assigns what fits and names what has to be spilled.
class Scan {
public:
  Scan(const MachineFunction& function, const TargetRegisters& registers)
      : function_(function), registers_(registers), intervals_(live_intervals(function)),
        assigned_(function.vregs.size(), -1) {}

  Status run() {
    std::vector<const LiveInterval*> order;
    for (const LiveInterval& interval : intervals_)
      if (interval.end >= 0 && !function_.vregs[interval.reg].spilled)
        order.push_back(&interval);
    std::sort(order.begin(), order.end(), [](const LiveInterval* a, const LiveInterval* b) {
      return std::pair(a->start, a->reg) < std::pair(b->start, b->reg);
    });
    for (const LiveInterval* interval : order)
      CORTIQ_RETURN_IF_ERROR(place(*interval));
    return {};
  }

  std::vector<int8_t> assigned() && { return std::move(assigned_); }
  const std::vector<VReg>& to_spill() const { return to_spill_; }

private:
  const VRegInfo& info(VReg reg) const { return function_.vregs[reg]; }

  float spill_cost(const LiveInterval& interval) const {
    const VRegInfo& vreg = info(interval.reg);
    if (vreg.transient)
      return std::numeric_limits<float>::infinity();
    // A constant is read from the pool where it is used: mostly as a memory operand, at no cost but the load port's.
    return vreg.constant >= 0 ? interval.weight * 0.1f : interval.weight;
  }

  Status place(const LiveInterval& interval) {
    auto& active = active_[static_cast<int>(info(interval.reg).reg_class)];
    std::erase_if(active, [&](VReg reg) { return intervals_[reg].end <= interval.start; });

    std::bitset<64> taken = forbidden(interval);
    for (VReg reg : active)
      taken.set(assigned_[reg]);
    int8_t choice = choose(interval, taken);
    if (choice < 0) {
      auto victim = std::min_element(active.begin(), active.end(), [&](VReg a, VReg b) {
        return spill_cost(intervals_[a]) < spill_cost(intervals_[b]);
      });
      // What a transient may not take is no victim for it either.
      if (info(interval.reg).transient)
        victim = cheapest_allowed(active, forbidden(interval));
      if (victim == active.end() || spill_cost(intervals_[*victim]) >= spill_cost(interval)) {
        if (info(interval.reg).transient)
          return make_room(interval);
        to_spill_.push_back(interval.reg);
        return {};
      }
      to_spill_.push_back(*victim);
      choice = assigned_[*victim];
      assigned_[*victim] = -1;
      active.erase(victim);
    }
    assigned_[interval.reg] = choice;
    active.push_back(interval.reg);
    return {};
  }

  /// A scratch register of moves found nothing it may take: one of the moved registers goes to its slot instead.
  Status make_room(const LiveInterval& interval) {
    VReg cheapest = kNoReg;
    for (const auto& [to, from] : function_.code[interval.start / 2].moves)
      for (VReg reg : {to, from})
        if (assigned_[reg] >= 0 && !info(reg).transient && info(reg).reg_class == info(interval.reg).reg_class &&
            (cheapest == kNoReg || spill_cost(intervals_[reg]) < spill_cost(intervals_[cheapest])))
          cheapest = reg;
    if (cheapest == kNoReg)
      return internal_error("one instruction needs more registers than the target has");
    to_spill_.push_back(cheapest);
    assigned_[cheapest] = -1;
    std::erase(active_[static_cast<int>(info(cheapest).reg_class)], cheapest);
    return {};
  }

  std::vector<VReg>::iterator cheapest_allowed(std::vector<VReg>& active, const std::bitset<64>& not_these) {
    auto best = active.end();
    for (auto it = active.begin(); it != active.end(); ++it)
      if (!not_these.test(assigned_[*it]) &&
          (best == active.end() || spill_cost(intervals_[*it]) < spill_cost(intervals_[*best])))
        best = it;
    return best;
  }

  /// Registers that an interval's own instruction writes although their intervals don't show it: a scratch register of
  /// moves keeps off the carried registers that these refill or read.
  std::bitset<64> forbidden(const LiveInterval& interval) const {
    std::bitset<64> result;
    if (!info(interval.reg).transient || interval.start < 0)
      return result;
    const Instruction& instruction = function_.code[interval.start / 2];
    if (std::find(std::begin(instruction.scratch), std::end(instruction.scratch), interval.reg) ==
        std::end(instruction.scratch))
      return result;
    for (const auto& [to, from] : instruction.moves)
      for (VReg reg : {to, from})
        if (info(reg).reg_class == info(interval.reg).reg_class && assigned_[reg] >= 0)
          result.set(assigned_[reg]);
    return result;
  }

  int8_t choose(const LiveInterval& interval, const std::bitset<64>& taken) const {
    const VRegInfo& vreg = info(interval.reg);
    const auto& pool = vreg.reg_class == RegClass::kScalar ? registers_.scalar : registers_.vector;
    const auto usable = [&](int8_t reg) {
      return reg >= 0 && !taken.test(reg) && std::find(pool.begin(), pool.end(), reg) != pool.end();
    };
    if (usable(vreg.fixed_hint))
      return vreg.fixed_hint;
    VReg hint = vreg.hint;
    for (int steps = 0; hint != kNoReg && steps < 8; ++steps, hint = info(hint).hint)
      if (usable(assigned_[hint]))
        return assigned_[hint];
    if (interval.start >= 0) {
      // A dying operand's register saves a copy where the result has to share one; the accumulator comes last in `uses`
      // of a fused multiply-add and first where it is tied.
      const Instruction& instruction = function_.code[interval.start / 2];
      if (instruction.def == interval.reg) {
        const int tied = instruction.rules ? instruction.rules->tied : -1;
        if (tied >= 0 && instruction.uses[tied] != kNoReg && usable(assigned_[instruction.uses[tied]]))
          return assigned_[instruction.uses[tied]];
        for (int operand = kMaxOperands - 1; operand >= 0; --operand)
          if (VReg use = instruction.uses[operand];
              use != kNoReg && info(use).reg_class == vreg.reg_class && usable(assigned_[use]))
            return assigned_[use];
      }
    }
    for (int8_t reg : pool)
      if (!taken.test(reg))
        return reg;
    return -1;
  }

  const MachineFunction& function_;
  const TargetRegisters& registers_;
  std::vector<LiveInterval> intervals_;
  std::vector<int8_t> assigned_;
  std::vector<VReg> active_[2];
  std::vector<VReg> to_spill_;
};

} // namespace

StatusOr<Allocation> allocate_registers(MachineFunction& function, const TargetRegisters& registers) {
  Allocation allocation;
  // Every round spills at least one register for good, and transients never spill.
  for (size_t rounds = function.vregs.size() + 1; rounds > 0; --rounds) {
    Scan scan(function, registers);
    CORTIQ_RETURN_IF_ERROR(scan.run());
    if (scan.to_spill().empty()) {
      allocation.assigned = std::move(scan).assigned();
      return allocation;
    }
    for (VReg reg : scan.to_spill())
      allocation.spilled += function.vregs[reg].constant < 0;
    spill(function, scan.to_spill(), registers);
  }
  return internal_error("register allocation did not come to an end");
}

} // namespace cortiq::codegen
