#include "codegen/aarch64/selector.h"

#include "mlir/IR/BuiltinAttributes.h"

namespace cortiq::codegen::aarch64 {

Status Selector::run() {
  const VReg args = new_scalar();
  function_.vregs[args].fixed_hint = 0;
  add({.rules = named_row("entry"), .def = args});
  regs_[kernel_.getBlock().getArgument(0)] = args;
  CORTIQ_RETURN_IF_ERROR(select_block(kernel_.getBlock()));
  drop_unused();
  place_constants();
  return {};
}

/// An op that became part of its user's instruction may have one of its own that nobody reads.
void Selector::drop_unused() {
  std::vector<uint32_t> readers(function_.vregs.size());
  const auto count = [&](const Instruction& instruction, int by) {
    const auto note = [&](VReg reg) {
      if (reg != kNoReg)
        readers[reg] += static_cast<uint32_t>(by);
    };
    for (VReg use : instruction.uses)
      note(use);
    note(instruction.mem.base);
    for (const auto& [to, from] : instruction.moves)
      note(from);
  };
  for (const Instruction& instruction : function_.code)
    count(instruction, 1);
  // Backwards, so that what only a dropped one reads is dropped too.
  std::vector<Instruction> kept;
  for (size_t i = function_.code.size(); i-- > 0;) {
    Instruction& instruction = function_.code[i];
    if (instruction.kind == InstructionKind::kOp && instruction.def != kNoReg && readers[instruction.def] == 0)
      count(instruction, -1);
    else
      kept.push_back(std::move(instruction));
  }
  function_.code.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
}

VReg Selector::add(const Built& built) {
  Instruction instruction;
  instruction.rules = built.rules;
  instruction.bits = static_cast<uint16_t>(built.bits);
  instruction.def = built.def;
  std::copy(built.uses.begin(), built.uses.end(), instruction.uses);
  instruction.imm = built.imm;
  instruction.mem = built.mem;
  function_.code.push_back(std::move(instruction));
  return built.def;
}

VReg Selector::add_named(std::string_view name, std::initializer_list<VReg> uses, int64_t imm) {
  return add({.rules = named_row(name), .def = new_vector(), .uses = uses, .imm = imm});
}

std::optional<int64_t> Selector::index_constant(mlir::Value value) const {
  if (auto index = value.getDefiningOp<vec::IndexOp>())
    return static_cast<int64_t>(index.getValue());
  return std::nullopt;
}

std::optional<std::vector<uint8_t>> Selector::constant_bytes(mlir::Value value) const {
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

VReg Selector::reg(mlir::Value value) {
  value = strip_bitcasts(value);
  if (auto bytes = constant_bytes(value))
    return constant(std::move(*bytes));
  if (const auto index = index_constant(value))
    return add({.rules = named_row("mov_imm"), .def = new_scalar(), .imm = *index});
  if (llvm::isa<vec::PtrType>(value.getType()))
    return materialise(address(value));
  return regs_.lookup(value);
}

VReg Selector::constant(std::vector<uint8_t> bytes) {
  bytes.resize(kVectorBits / 8);
  const int32_t number = pool_.add(bytes);
  const auto [it, is_new] = constants_.try_emplace(number, kNoReg);
  if (is_new) {
    it->second = new_vector();
    function_.vregs[it->second].constant = number;
  }
  return it->second;
}

VReg Selector::splat_constant(uint64_t lane, unsigned lane_bytes) {
  std::vector<uint8_t> bytes(kVectorBits / 8);
  for (size_t at = 0; at < bytes.size(); at += lane_bytes)
    std::memcpy(bytes.data() + at, &lane, lane_bytes);
  return constant(bytes);
}

/// Constants that a loop uses are made before the outermost loop around their first use; those used only outside of
/// loops are read from the pool at each use.
void Selector::place_constants() {
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
  for (const auto& [number, constant] : constants_) {
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
    for (auto it = begin; it != end; ++it)
      load_constant(it->second, function_.vregs[it->second].constant);
    function_.code.push_back(std::move(code[i]));
  }
}

void Selector::load_constant(VReg def, int32_t number) {
  const std::vector<uint8_t>& bytes = pool_.bytes(number);
  const bool one_byte = std::all_of(bytes.begin(), bytes.end(), [&](uint8_t byte) { return byte == bytes[0]; });
  if (one_byte)
    add({.rules = named_row("splat_byte"), .def = def, .imm = bytes[0]});
  else
    add({.rules = named_row("load"), .def = def, .mem = {.constant = number}});
}

} // namespace cortiq::codegen::aarch64
