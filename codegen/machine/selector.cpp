#include "codegen/machine/selector.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace cortiq::codegen {

std::string_view lane_name(mlir::Value value) {
  auto vector = llvm::dyn_cast<mlir::VectorType>(value.getType());
  if (!vector)
    return "";
  const mlir::Type lane = vector.getElementType();
  if (lane.isF32())
    return "f32";
  if (lane.isF16())
    return "f16";
  if (lane.isBF16())
    return "bf16";
  return lane.isInteger(8) ? "i8" : lane.isInteger(16) ? "i16" : "i32";
}

mlir::Value strip_bitcasts(mlir::Value value) {
  while (auto cast = value.getDefiningOp<vec::BitcastOp>())
    value = cast.getValue();
  return value;
}

mlir::Value root_of(mlir::Value ptr) {
  while (auto add = ptr.getDefiningOp<vec::PtrAddOp>())
    ptr = add.getPtr();
  return ptr;
}

Status MachineSelector::select_kernel(int8_t argument_register) {
  const VReg args = new_scalar();
  function_.vregs[args].fixed_hint = argument_register;
  add({.rules = rules("entry"), .bits = 64, .def = args});
  regs_[kernel_.getBlock().getArgument(0)] = args;
  CORTIQ_RETURN_IF_ERROR(select_block(kernel_.getBlock()));
  finish_ops();
  place_constants();
  return {};
}

VReg MachineSelector::add(const Built& built) {
  Instruction instruction;
  instruction.rules = built.rules;
  instruction.bits = static_cast<uint16_t>(built.bits);
  instruction.def = built.def;
  std::copy(built.uses.begin(), built.uses.end(), instruction.uses);
  instruction.imm = built.imm;
  instruction.mem = built.mem;
  instruction.memory_operand = built.memory_operand;
  function_.code.push_back(std::move(instruction));
  return built.def;
}

std::optional<int64_t> MachineSelector::index_constant(mlir::Value value) const {
  if (auto index = value.getDefiningOp<vec::IndexOp>())
    return static_cast<int64_t>(index.getValue());
  return std::nullopt;
}

std::optional<std::vector<uint8_t>> MachineSelector::constant_bytes(mlir::Value value) const {
  auto literal = strip_bitcasts(value).getDefiningOp<vec::ConstantOp>();
  if (!literal)
    return std::nullopt;
  auto elements = llvm::cast<mlir::DenseElementsAttr>(literal.getValue());
  const size_t lane_bytes = literal.getType().getElementTypeBitWidth() / 8;
  const bool is_float = llvm::isa<mlir::FloatType>(elements.getElementType());
  std::vector<uint8_t> bytes(bits_of(literal) / 8);
  for (size_t i = 0; i < bytes.size() / lane_bytes; ++i) {
    const uint64_t lane = is_float ? elements.getValues<llvm::APFloat>()[i].bitcastToAPInt().getZExtValue()
                                   : elements.getValues<llvm::APInt>()[i].getZExtValue();
    std::memcpy(bytes.data() + i * lane_bytes, &lane, lane_bytes);
  }
  return bytes;
}

VReg MachineSelector::reg(mlir::Value value) {
  value = strip_bitcasts(value);
  if (auto bytes = constant_bytes(value))
    return constant(std::move(*bytes));
  if (const auto index = index_constant(value))
    return add({.rules = rules("mov_imm"), .bits = 64, .def = new_scalar(), .imm = *index});
  if (llvm::isa<vec::PtrType>(value.getType()))
    return pointer(value);
  return regs_.lookup(value);
}

VReg MachineSelector::constant(std::vector<uint8_t> bytes) {
  bytes.resize(std::max<size_t>(bytes.size(), least_bits_ / 8));
  const int32_t number = pool_.add(bytes);
  const unsigned bits = static_cast<unsigned>(bytes.size()) * 8;
  const auto [it, is_new] = constants_.try_emplace({number, bits}, kNoReg);
  if (is_new) {
    it->second = function_.new_vreg(RegClass::kVector, bits);
    function_.vregs[it->second].constant = number;
  }
  return it->second;
}

VReg MachineSelector::splat_constant(uint64_t lane, unsigned lane_bytes, unsigned bits) {
  std::vector<uint8_t> bytes(bits / 8);
  for (size_t at = 0; at < bytes.size(); at += lane_bytes)
    std::memcpy(bytes.data() + at, &lane, lane_bytes);
  return constant(bytes);
}

/// Constants that a loop uses are made before the outermost loop around their first use; those used only outside of
/// loops are read from the pool at each use.
void MachineSelector::place_constants() {
  struct Place {
    int64_t first = -1; ///< instruction to stand before
    bool in_loop = false;
  };
  std::map<VReg, Place> places;
  int64_t outermost = -1;
  int depth = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(function_.code.size()); ++i) {
    const Instruction& instruction = function_.code[i];
    if (instruction.kind == InstructionKind::kLoopBegin && depth++ == 0)
      outermost = i;
    const auto note = [&](VReg used) {
      if (used == kNoReg || function_.vregs[used].constant < 0 || instruction.def == used)
        return;
      Place& place = places[used];
      if (place.first < 0)
        place.first = depth > 0 ? outermost : i;
      place.in_loop |= depth > 0;
    };
    for (VReg use : instruction.uses)
      note(use);
    for (const auto& [to, from] : instruction.moves)
      note(from);
    if (instruction.kind == InstructionKind::kLoopEnd)
      --depth;
  }

  std::multimap<int64_t, VReg> before;
  for (const auto& [key, constant] : constants_) {
    const auto it = places.find(constant);
    if (it == places.end())
      continue;
    if (it->second.in_loop)
      before.emplace(it->second.first, constant);
    else
      constants_from_pool_.push_back(constant);
  }
  std::vector<Instruction> code = std::move(function_.code);
  function_.code.clear();
  for (int64_t i = 0; i < static_cast<int64_t>(code.size()); ++i) {
    const auto [begin, end] = before.equal_range(i);
    for (auto it = begin; it != end; ++it) {
      const VRegInfo& info = function_.vregs[it->second];
      load_constant(it->second, info.constant, info.bits);
    }
    function_.code.push_back(std::move(code[i]));
  }
}

} // namespace cortiq::codegen
