// One function an op that is more than one row of the instruction table, and the table that finds it.

#include "codegen/aarch64/selector.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

namespace cortiq::codegen::aarch64 {

struct OpSelectors {
  using Function = Status (*)(Selector&, mlir::Operation*);

  static Status refuse(mlir::Operation* op, const std::string& why) {
    return unsupported(std::string(op->getName().getStringRef()) + ": " + why);
  }

  /// Selected where it is used, or, as vec.prefetch, a hint: the processors' own prefetchers follow a row group.
  static Status nothing(Selector&, mlir::Operation*) { return {}; }

  //--- scalars and addresses ------------------------------------------------------------------------------------------
  template <class Op>
  static Status load_field(Selector& s, mlir::Operation* op) {
    auto load = llvm::cast<Op>(op);
    const MemRef field = s.memory(load.getPtr(), static_cast<int64_t>(load.getOffset()), 64);
    s.regs_[load.getResult()] = s.add({.rules = named_row("ldr"), .def = s.new_scalar(), .mem = field});
    return {};
  }

  static Status read_index(Selector& s, mlir::Operation* op) {
    auto read = llvm::cast<vec::ReadIndexOp>(op);
    const MemRef at = s.memory(read.getPtr(), static_cast<int64_t>(read.getOffset()), 32);
    s.regs_[read.getResult()] = s.add({.rules = named_row("ldr4"), .def = s.new_scalar(), .mem = at});
    return {};
  }

  static Status table_address(Selector& s, mlir::Operation* op) {
    constexpr size_t kTableAlignment = 64;
    auto table = llvm::cast<vec::TableOp>(op);
    const llvm::ArrayRef<char> bytes = table.getBytes();
    const int32_t number = s.pool_.add({bytes.begin(), bytes.end()}, kTableAlignment);
    s.regs_[table.getResult()] = s.add({.rules = named_row("adr"), .def = s.new_scalar(), .mem = {.constant = number}});
    return {};
  }

  static Status ptr_offset(Selector& s, mlir::Operation* op) {
    s.select_ptr_offset(llvm::cast<vec::PtrOffsetOp>(op));
    return {};
  }

  //--- loads and stores -----------------------------------------------------------------------------------------------
  static Status load(Selector& s, mlir::Operation* op) {
    s.select_load(llvm::cast<vec::LoadOp>(op));
    return {};
  }

  static Status load_splat(Selector& s, mlir::Operation* op) {
    s.select_load_splat(llvm::cast<vec::LoadSplatOp>(op));
    return {};
  }

  static Status store(Selector& s, mlir::Operation* op) {
    auto store = llvm::cast<vec::StoreOp>(op);
    const mlir::Value value = store.getValue();
    const unsigned lane_bytes = llvm::cast<mlir::VectorType>(value.getType()).getElementTypeBitWidth() / 8;
    const unsigned bytes =
        static_cast<unsigned>(store.getLanes().value_or(s.bits_of(value) / 8 / lane_bytes)) * lane_bytes;
    const int64_t offset = static_cast<int64_t>(store.getOffset());
    const VReg from = s.reg(value);
    unsigned done = 0;
    for (const auto& [piece, name] :
         {std::pair{16u, "store"}, {8u, "extract_d"}, {4u, "extract_s"}, {2u, "extract_h"}, {1u, "extract_b"}}) {
      if (bytes - done < piece)
        continue;
      const int64_t at = offset + static_cast<int64_t>(done);
      if (done == 0)
        s.add({.rules = named_row("store"),
               .bits = 8 * piece,
               .uses = {from},
               .mem = s.memory(store.getPtr(), at, 8 * piece)});
      else
        s.add(
            {.rules = named_row(name), .uses = {from}, .imm = done / piece, .mem = s.exact_memory(store.getPtr(), at)});
      done += piece;
    }
    return {};
  }

  static Status gather(Selector& s, mlir::Operation* op) {
    auto gather = llvm::cast<vec::GatherOp>(op);
    if (s.bits_of(gather) != kVectorBits)
      return refuse(op, "needs 128 bits on AArch64");
    const MemRef at = s.exact_memory(gather.getPtr(), static_cast<int64_t>(gather.getOffset()));
    s.regs_[gather] = s.add({.rules = named_row("gather"),
                             .def = s.new_vector(),
                             .uses = {s.reg(gather.getIndex())},
                             .imm = static_cast<int64_t>(llvm::Log2_64(gather.getScale())),
                             .mem = at});
    return {};
  }

  //--- lanes ----------------------------------------------------------------------------------------------------------
  /// Ops of one instruction: their row and their operands as they are.
  static Status one_instruction(Selector& s, mlir::Operation* op) {
    const mlir::Value result = op->getResult(0);
    Instruction instruction;
    instruction.rules = lane_row(op->getName().getStringRef(), lane_name(result));
    instruction.bits = kVectorBits;
    for (size_t operand = 0; operand < op->getNumOperands(); ++operand)
      instruction.uses[operand] = s.reg(op->getOperand(static_cast<unsigned>(operand)));
    instruction.def = s.new_vector();
    s.function_.code.push_back(instruction);
    s.regs_[result] = instruction.def;
    return {};
  }

  template <class Op>
  static Status shift(Selector& s, mlir::Operation* op) {
    auto shift = llvm::cast<Op>(op);
    const int64_t amount = static_cast<int64_t>(shift.getAmount());
    if (amount == 0) {
      s.regs_[shift] = s.reg(shift.getValue());
      return {};
    }
    s.regs_[shift] = s.add({.rules = lane_row(op->getName().getStringRef(), lane_name(shift)),
                            .def = s.new_vector(),
                            .uses = {s.reg(shift.getValue())},
                            .imm = amount});
    return {};
  }

  /// The high nibbles of bytes are often written as a shift of 16-bit lanes and a mask: one shift of bytes here.
  static Status bit_and(Selector& s, mlir::Operation* op) {
    for (unsigned operand : {0u, 1u}) {
      auto shift = strip_bitcasts(op->getOperand(operand)).getDefiningOp<vec::ShrUOp>();
      const auto mask = s.constant_bytes(op->getOperand(1 - operand));
      if (!shift || !mask || shift.getAmount() == 0 || shift.getAmount() > 7)
        continue;
      const auto kept = static_cast<uint8_t>(0xff >> shift.getAmount());
      if (!llvm::all_of(*mask, [&](uint8_t byte) { return byte == kept; }))
        continue;
      s.regs_[op->getResult(0)] =
          s.add_named("ushr8", {s.reg(shift.getValue())}, static_cast<int64_t>(shift.getAmount()));
      return {};
    }
    return one_instruction(s, op);
  }

  static Status shift_by_lanes(Selector& s, mlir::Operation* op) {
    // Negative amounts shift right; 32 and more leave nothing, but only the low byte of an amount counts.
    const VReg most = s.splat_constant(32, 4);
    const VReg amount = s.add_named("umin32", {s.reg(op->getOperand(1)), most});
    s.regs_[op->getResult(0)] = s.add_named("ushl32", {s.reg(op->getOperand(0)), s.add_named("neg32", {amount})});
    return {};
  }

  static Status multiply(Selector& s, mlir::Operation* op) {
    if (lane_name(op->getResult(0)) == "f32")
      for (unsigned operand : {1u, 0u})
        if (const auto lane = s.lane_of(op->getOperand(operand))) {
          s.regs_[op->getResult(0)] =
              s.add_named("fmul_lane", {s.reg(op->getOperand(1 - operand)), lane->reg}, lane->number);
          return {};
        }
    return one_instruction(s, op);
  }

  static Status fma(Selector& s, mlir::Operation* op) {
    for (unsigned operand : {1u, 0u})
      if (const auto lane = s.lane_of(op->getOperand(operand))) {
        s.regs_[op->getResult(0)] = s.add_named(
            "fmla_lane", {s.reg(op->getOperand(1 - operand)), lane->reg, s.reg(op->getOperand(2))}, lane->number);
        return {};
      }
    return one_instruction(s, op);
  }

  static Status sign(Selector& s, mlir::Operation* op) {
    const VReg x = s.reg(op->getOperand(0)), w = s.reg(op->getOperand(1));
    const VReg negative = s.add_named("is_negative8", {w});
    const VReg turned = s.add_named("sub8", {s.add_named("eor", {x, negative}), negative});
    s.regs_[op->getResult(0)] = s.add_named("and", {turned, s.add_named("is_not_zero8", {w})});
    return {};
  }

  /// Whether no byte of `value` is 16..127, for which vec.lookup16 and the table lookup differ.
  static bool is_plain_index(Selector& s, mlir::Value value) {
    const auto plain = [](const std::vector<uint8_t>& bytes) {
      return llvm::all_of(bytes, [](uint8_t byte) { return (byte & 0x70) == 0; });
    };
    if (const auto bytes = s.constant_bytes(value))
      return plain(*bytes);
    if (auto masked = strip_bitcasts(value).getDefiningOp<vec::AndOp>())
      for (mlir::Value operand : masked->getOperands())
        if (const auto bytes = s.constant_bytes(operand); bytes && plain(*bytes))
          return true;
    return false;
  }

  static Status lookup16(Selector& s, mlir::Operation* op) {
    VReg index = s.reg(op->getOperand(1));
    if (!is_plain_index(s, op->getOperand(1)))
      index = s.add_named("and", {index, s.splat_constant(0x8f, 1)});
    s.regs_[op->getResult(0)] = s.add_named("tbl", {s.reg(op->getOperand(0)), index});
    return {};
  }

  template <bool kGreater>
  static Status extremum(Selector& s, mlir::Operation* op) {
    const VReg a = s.reg(op->getOperand(0)), b = s.reg(op->getOperand(1));
    const VReg first = kGreater ? s.add_named("is_greater", {a, b}) : s.add_named("is_greater", {b, a});
    s.regs_[op->getResult(0)] = s.add_named("select", {first, a, b});
    return {};
  }

  //--- products of integers -------------------------------------------------------------------------------------------
  static VReg pairs_of_products(Selector& s, VReg lhs, VReg rhs) {
    return s.add_named("addp16", {s.add_named("smull8", {lhs, rhs}), s.add_named("smull8_high", {lhs, rhs})});
  }

  static Status dot2(Selector& s, mlir::Operation* op) {
    auto dot = llvm::cast<vec::Dot2Op>(op);
    if (dot.getUmax() > 127)
      return refuse(op, "takes unsigned bytes up to 127 on AArch64");
    s.regs_[dot] = pairs_of_products(s, s.reg(dot.getLhs()), s.reg(dot.getRhs()));
    return {};
  }

  static Status mul_pairs(Selector& s, mlir::Operation* op) {
    const VReg lhs = s.reg(op->getOperand(0)), rhs = s.reg(op->getOperand(1));
    s.regs_[op->getResult(0)] =
        s.add_named("addp32", {s.add_named("smull16", {lhs, rhs}), s.add_named("smull16_high", {lhs, rhs})});
    return {};
  }

  /// acc + the sums of four products of signed bytes, `rhs` as one lane where it can.
  static VReg signed_dot(Selector& s, VReg acc, VReg lhs, mlir::Value rhs) {
    if (!s.features_.dotprod)
      return s.add_named("sadalp", {acc, pairs_of_products(s, lhs, s.reg(rhs))});
    if (const auto lane = s.lane_of(rhs))
      return s.add_named("sdot_lane", {acc, lhs, lane->reg}, lane->number);
    return s.add_named("sdot", {acc, lhs, s.reg(rhs)});
  }

  static Status signed_dot4(Selector& s, mlir::Operation* op) {
    auto dot = llvm::cast<vec::SignedDot4Op>(op);
    s.regs_[dot] = signed_dot(s, s.reg(dot.getAcc()), s.reg(dot.getLhs()), dot.getRhs());
    return {};
  }

  static Status dot8_pairs(Selector& s, mlir::Operation* op) {
    if (!s.features_.i8mm)
      return refuse(op, "needs a target with i8mm");
    // A sum that starts from nothing writes its own zeros: a copy of a register costs as much, and the register.
    const auto start = s.constant_bytes(op->getOperand(0));
    const bool is_zero = start && llvm::all_of(*start, [](uint8_t byte) { return byte == 0; });
    const VReg acc = is_zero ? s.add_named("splat_byte", {}) : s.reg(op->getOperand(0));
    s.regs_[op->getResult(0)] = s.add_named("smmla", {acc, s.reg(op->getOperand(1)), s.reg(op->getOperand(2))});
    return {};
  }

  static Status interleave(Selector& s, mlir::Operation* op) {
    auto zip = llvm::cast<vec::InterleaveOp>(op);
    const char* const rows[2][2] = {{"zip1", "zip2"}, {"zip1_pairs", "zip2_pairs"}};
    s.regs_[zip] = s.add_named(rows[zip.getBytes() == 8][zip.getHigh()], {s.reg(zip.getLhs()), s.reg(zip.getRhs())});
    return {};
  }

  static Status deinterleave(Selector& s, mlir::Operation* op) {
    auto unzip = llvm::cast<vec::DeinterleaveOp>(op);
    s.regs_[unzip] = s.add_named(unzip.getOdd() ? "uzp2" : "uzp1", {s.reg(unzip.getLhs()), s.reg(unzip.getRhs())});
    return {};
  }

  static Status dot4(Selector& s, mlir::Operation* op) {
    auto dot = llvm::cast<vec::Dot4Op>(op);
    const VReg acc = s.reg(dot.getAcc()), lhs = s.reg(dot.getLhs());
    if (dot.getUmax() <= 127) {
      s.regs_[dot] = signed_dot(s, acc, lhs, dot.getRhs());
      return {};
    }
    if (s.features_.i8mm) {
      const auto lane = s.lane_of(dot.getRhs());
      s.regs_[dot] = lane ? s.add_named("usdot_lane", {acc, lhs, lane->reg}, lane->number)
                          : s.add_named("usdot", {acc, lhs, s.reg(dot.getRhs())});
      return {};
    }
    // Two parts of the unsigned side: its low seven bits, and bit 7, whose sum counts 128 times.
    const VReg low = s.add_named("and", {lhs, s.splat_constant(0x7f, 1)});
    const VReg high = s.add_named("ushr8", {lhs}, 7);
    const VReg sum = signed_dot(s, acc, low, dot.getRhs());
    const VReg top = signed_dot(s, s.splat_constant(0, 4), high, dot.getRhs());
    s.regs_[dot] = s.add_named("add32", {sum, s.add_named("shl32", {top}, 7)});
    return {};
  }

  //--- conversions ----------------------------------------------------------------------------------------------------
  static VReg to_i32(Selector& s, VReg value) {
    // What i32 can't hold saturates upward, and NaN becomes 0; both are -2^31 by the op's definition.
    const VReg fits = s.add_named("is_greater", {s.splat_constant(0x4f000000, 4), value}); // 2^31
    return s.add_named("select", {fits, s.add_named("fcvtns", {value}), s.splat_constant(0x80000000, 4)});
  }

  /// A field that is shifted down, masked and converted is converted where it stands, as a number with as many bits
  /// behind the point: one shift less, and the same value.
  static bool convert_field(Selector& s, vec::ConvertOp convert) {
    for (unsigned operand : {0u, 1u}) {
      auto masked = strip_bitcasts(convert.getValue()).getDefiningOp<vec::AndOp>();
      if (!masked)
        return false;
      auto shift = strip_bitcasts(masked.getOperand(operand)).getDefiningOp<vec::ShrUOp>();
      const auto mask = s.constant_bytes(masked.getOperand(1 - operand));
      if (!shift || !mask || lane_name(shift) != "i32" || shift.getAmount() == 0)
        continue;
      uint32_t field = 0;
      std::memcpy(&field, mask->data(), sizeof(field));
      const bool same = llvm::all_of(llvm::enumerate(*mask),
                                     [&](auto byte) { return byte.value() == (*mask)[byte.index() % sizeof(field)]; });
      // Neither the sign nor rounding may come into it.
      constexpr unsigned kSignificant = 24;
      if (!same || field == 0 || field >> kSignificant || llvm::Log2_32(field) + shift.getAmount() > 30)
        continue;
      const VReg in_place =
          s.add_named("and", {s.reg(shift.getValue()), s.splat_constant(uint64_t{field} << shift.getAmount(), 4)});
      s.regs_[convert] = s.add_named("scvtf_fixed", {in_place}, static_cast<int64_t>(shift.getAmount()));
      return true;
    }
    return false;
  }

  static Status convert(Selector& s, mlir::Operation* op) {
    auto convert = llvm::cast<vec::ConvertOp>(op);
    const std::string_view from = lane_name(convert.getValue()), to = lane_name(convert);
    if (from == "i32" && convert_field(s, convert))
      return {};
    const VReg value = s.reg(convert.getValue());
    const bool is_unsigned = convert.getIsUnsigned();
    VReg& result = s.regs_[convert];
    if (from == "i32")
      result = s.add_named("scvtf", {value});
    else if (from == "f32")
      result = to_i32(s, value);
    else if (from == "f16")
      result = s.add_named("fcvtl", {value});
    else if (from == "bf16")
      result = s.add_named("shll", {value});
    else if (from == "i16")
      result = s.add_named(is_unsigned ? "ushll16" : "sshll16", {value});
    else {
      const VReg wide = s.add_named(is_unsigned ? "ushll8" : "sshll8", {value});
      result = to == "i16" ? wide : s.add_named(is_unsigned ? "ushll16" : "sshll16", {wide});
    }
    return {};
  }

  static Status reduce_add(Selector& s, mlir::Operation* op) {
    const mlir::Value result = op->getResult(0);
    const std::string_view sum_of = lane_name(result) == "f32" ? "fadd" : "add32";
    VReg sum = s.reg(op->getOperand(0));
    // Each step adds the vector to itself with its halves, then their halves exchanged: all lanes end up equal, and
    // each sum has the same two terms as in the op's fixed order.
    if (s.bits_of(result) == kVectorBits)
      sum = s.add_named(sum_of, {sum, s.add_named("swap_halves", {sum})});
    s.regs_[result] = s.add_named(sum_of, {sum, s.add_named("swap_words", {sum})});
    return {};
  }

  static const llvm::StringMap<Function>& table() {
    static const llvm::StringMap<Function> rows = {
        {"vec.and", bit_and},
        {"vec.bitcast", nothing},
        {"vec.constant", nothing},
        {"vec.convert", convert},
        {"vec.deinterleave", deinterleave},
        {"vec.dot2", dot2},
        {"vec.dot4", dot4},
        {"vec.dot8_pairs", dot8_pairs},
        {"vec.fma", fma},
        {"vec.fmax", extremum<true>},
        {"vec.fmin", extremum<false>},
        {"vec.gather", gather},
        {"vec.index", nothing},
        {"vec.interleave", interleave},
        {"vec.load", load},
        {"vec.load_index", load_field<vec::LoadIndexOp>},
        {"vec.load_ptr", load_field<vec::LoadPtrOp>},
        {"vec.load_splat", load_splat},
        {"vec.lookup16", lookup16},
        {"vec.mul", multiply},
        {"vec.mul_pairs", mul_pairs},
        {"vec.prefetch", nothing},
        {"vec.ptr_add", nothing},
        {"vec.ptr_offset", ptr_offset},
        {"vec.read_index", read_index},
        {"vec.reduce_add", reduce_add},
        {"vec.shl", shift<vec::ShlOp>},
        {"vec.shr_s", shift<vec::ShrSOp>},
        {"vec.shr_u", shift<vec::ShrUOp>},
        {"vec.shr_v", shift_by_lanes},
        {"vec.sign", sign},
        {"vec.signed_dot4", signed_dot4},
        {"vec.store", store},
        {"vec.table", table_address},
    };
    return rows;
  }
};

Status Selector::select_op(mlir::Operation& op) {
  const auto too_wide = [&](mlir::Value value) {
    return llvm::isa<mlir::VectorType>(value.getType()) && bits_of(value) > kVectorBits;
  };
  if (llvm::any_of(op.getOperands(), too_wide) || llvm::any_of(op.getResults(), too_wide))
    return OpSelectors::refuse(&op, "has a vector wider than the target's 128 bits");
  if (op.getNumResults() > 0 && op.use_empty())
    return {};
  if (const auto row = OpSelectors::table().find(op.getName().getStringRef()); row != OpSelectors::table().end())
    return row->second(*this, &op);
  if (op.getNumResults() == 1 && lane_row(op.getName().getStringRef(), lane_name(op.getResult(0))))
    return OpSelectors::one_instruction(*this, &op);
  return OpSelectors::refuse(&op, "has no AArch64 selection");
}

} // namespace cortiq::codegen::aarch64
