// Counted loops in the shape that machine_ir.h states.

#include "codegen/machine/selector.h"

#include "codegen/machine/loop_limit.h"

#include "llvm/Support/MathExtras.h"

namespace cortiq::codegen {

Status MachineSelector::select_block(mlir::Block& block) {
  for (mlir::Operation& op : block.without_terminator()) {
    if (auto loop = llvm::dyn_cast<vec::LoopOp>(op))
      CORTIQ_RETURN_IF_ERROR(select_loop(loop));
    else
      CORTIQ_RETURN_IF_ERROR(select_op(op));
  }
  return {};
}

/// New registers for the carried values, holding their initial values.
void MachineSelector::define_carried(vec::LoopOp loop, uint32_t id, std::vector<VReg>& carried) {
  std::vector<std::pair<VReg, VReg>> moves;
  for (auto [argument, init] : llvm::zip(loop.getCarried(), loop.getInitArgs())) {
    const bool is_vector = llvm::isa<mlir::VectorType>(argument.getType());
    const VReg from = reg(init);
    const VReg to = is_vector ? new_vector(argument) : new_scalar();
    function_.vregs[to].carried_by = id;
    if (is_vector && function_.vregs[from].constant >= 0)
      load_constant(to, function_.vregs[from].constant, function_.vregs[to].bits);
    else
      moves.emplace_back(to, from), function_.vregs[to].hint = from;
    carried.push_back(to);
    regs_[argument] = to;
  }
  if (moves.empty())
    return;
  Instruction entry;
  entry.kind = InstructionKind::kMoves;
  entry.moves = std::move(moves);
  function_.code.push_back(std::move(entry));
}

/// The register of a yielded value; a copy where that register advances before the loop's last moves.
VReg MachineSelector::yielded(mlir::Value value) {
  const VReg from = reg(value);
  if (!advances_.contains(from))
    return from;
  return add({.rules = rules("mov"), .bits = 64, .def = new_scalar(), .uses = {from}});
}

Status MachineSelector::select_loop(vec::LoopOp loop) {
  const auto lo = index_constant(loop.getLo()), hi = index_constant(loop.getHi());
  const int64_t step = static_cast<int64_t>(loop.getStep());
  if (!llvm::isInt<32>(step))
    return unsupported("vec.loop: a step of " + std::to_string(step) + " does not fit 32 bits");
  const uint32_t id = function_.loops++;

  const VReg counter = new_scalar();
  if (lo)
    add({.rules = rules("mov_imm"), .bits = 64, .def = counter, .imm = *lo});
  else
    add({.rules = rules("mov"), .bits = 64, .def = counter, .uses = {reg(loop.getLo())}});
  advances_.insert(counter);
  regs_[loop.getInductionVar()] = counter;
  const bool immediate = hi && llvm::isInt<32>(*hi);
  const VReg limit = immediate ? kNoReg : reg(loop.getHi());

  std::vector<std::pair<VReg, int64_t>> bumps;
  bump_pointers(loop, counter, bumps);
  std::vector<VReg> carried;
  define_carried(loop, id, carried);

  Instruction begin;
  begin.kind = InstructionKind::kLoopBegin;
  begin.loop = id;
  begin.uses[0] = counter;
  begin.uses[1] = limit;
  begin.imm = immediate ? *hi : 0;
  begin.runs_at_least_once = lo && hi && *lo < *hi;
  begin.iterations = begin.runs_at_least_once ? llvm::divideCeil(static_cast<uint64_t>(*hi - *lo), step) : 0;
  begin.step = step;
  begin.limit = limit_field(loop, lo);
  function_.code.push_back(std::move(begin));

  CORTIQ_RETURN_IF_ERROR(select_body(loop));

  Instruction end;
  end.kind = InstructionKind::kLoopEnd;
  end.loop = id;
  end.uses[0] = counter;
  end.uses[1] = limit;
  end.imm = immediate ? *hi : 0;
  for (auto [to, value] : llvm::zip(carried, loop.getYielded())) {
    const VReg from = yielded(value);
    end.moves.emplace_back(to, from);
    if (VRegInfo& info = function_.vregs[from];
        info.hint == kNoReg && info.constant < 0 && info.carried_by == kNoLoop && from != to)
      info.hint = to;
  }
  bumps.emplace_back(counter, step);
  for (const auto& [pointer, by] : bumps)
    add({.rules = rules("add_imm"), .bits = 64, .def = pointer, .uses = {pointer}, .imm = by});
  function_.code.push_back(std::move(end));

  Instruction exit;
  exit.kind = InstructionKind::kMoves;
  for (auto [result, from] : llvm::zip(loop.getResults(), carried)) {
    if (result.use_empty())
      continue;
    const VReg to = llvm::isa<mlir::VectorType>(result.getType()) ? new_vector(result) : new_scalar();
    function_.vregs[to].hint = from;
    regs_[result] = to;
    exit.moves.emplace_back(to, from);
  }
  if (!exit.moves.empty())
    function_.code.push_back(std::move(exit));
  return {};
}

} // namespace cortiq::codegen
