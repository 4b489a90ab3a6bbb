// One function an op that is more than one row of the instruction table, and the table that finds it.

#include "codegen/x86/selector.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

namespace cortiq::codegen::x86 {

struct OpSelectors {
  using Function = Status (*)(Selector&, mlir::Operation*);

  static Status refuse(mlir::Operation* op, const std::string& why) {
    return unsupported(std::string(op->getName().getStringRef()) + ": " + why);
  }

  //--- scalars and addresses
  //----------------------------------------------------------------------------------------------
  static Status nothing(Selector&, mlir::Operation*) { return {}; } // selected where it is used

  template <class Op>
  static Status load_field(Selector& s, mlir::Operation* op) {
    auto load = llvm::cast<Op>(op);
    const MemRef field = s.memory(load.getPtr(), static_cast<int64_t>(load.getOffset()));
    s.regs_[load.getResult()] = s.add({.rules = s.row("mov_load"), .bits = 64, .def = s.new_scalar(), .mem = field});
    return {};
  }

  static Status read_index(Selector& s, mlir::Operation* op) {
    auto read = llvm::cast<vec::ReadIndexOp>(op);
    const MemRef at = s.memory(read.getPtr(), static_cast<int64_t>(read.getOffset()));
    s.regs_[read.getResult()] = s.add({.rules = s.row("mov_load4"), .bits = 64, .def = s.new_scalar(), .mem = at});
    return {};
  }

  static Status table_address(Selector& s, mlir::Operation* op) {
    constexpr size_t kTableAlignment = 64;
    auto table = llvm::cast<vec::TableOp>(op);
    const llvm::ArrayRef<char> bytes = table.getBytes();
    const int32_t number = s.pool_.add({bytes.begin(), bytes.end()}, kTableAlignment);
    s.regs_[table.getResult()] =
        s.add({.rules = s.row("lea"), .bits = 64, .def = s.new_scalar(), .mem = {.constant = number}});
    return {};
  }

  static Status ptr_offset(Selector& s, mlir::Operation* op) {
    s.select_ptr_offset(llvm::cast<vec::PtrOffsetOp>(op));
    return {};
  }

  static Status prefetch(Selector& s, mlir::Operation* op) {
    auto prefetch = llvm::cast<vec::PrefetchOp>(op);
    s.add({.rules = s.row(prefetch.getNear() ? "prefetch_near" : "prefetch"),
           .bits = 64,
           .mem = s.memory(prefetch.getPtr(), static_cast<int64_t>(prefetch.getOffset()))});
    return {};
  }

  //--- loads and stores
  //---------------------------------------------------------------------------------------------------
  static Status load(Selector& s, mlir::Operation* op) {
    auto load = llvm::cast<vec::LoadOp>(op);
    if (s.is_folded(op))
      return {};
    const int64_t offset = static_cast<int64_t>(load.getOffset());
    const unsigned bits = s.bits_of(load);
    const unsigned lane_bytes = load.getType().getElementTypeBitWidth() / 8;
    const unsigned bytes =
        static_cast<unsigned>(load.getLanes().value_or(load.getType().getNumElements())) * lane_bytes;
    if (bytes * 8 == bits) {
      s.regs_[load] = s.add({.rules = s.row(bits == 32   ? "load4"
                                            : bits < 128 ? "load8"
                                                         : "load"),
                             .bits = std::max(128u, bits),
                             .def = s.new_vector(load),
                             .mem = s.memory(load.getPtr(), offset)});
      return {};
    }
    s.regs_[load] = load_bytes(s, load.getPtr(), offset, bytes, bits, bits);
    return {};
  }

  /// The first `bytes` bytes, less than the whole vector of `bits`, the rest zero up to `held`, the bits of the
  /// register.
  static VReg load_bytes(Selector& s, mlir::Value ptr, int64_t offset, unsigned bytes, unsigned bits, unsigned held) {
    if (bits > 128) {
      const unsigned half = bits / 16;
      if (bytes <= half) // an operation on 128 or 256 bits clears what is above
        return whole_or_part(s, ptr, offset, bytes, bits / 2, held);
      const VReg low = whole_or_part(s, ptr, offset, half, bits / 2, bits / 2);
      const VReg high = whole_or_part(s, ptr, offset + half, bytes - half, bits / 2, bits / 2);
      return s.add_named("insert_half", bits, {low, high}, 0, held);
    }
    // 1 to 15 bytes: the largest power of two first, the others inserted behind it.
    VReg value = kNoReg;
    unsigned done = 0;
    for (const auto& [piece, name] : {std::pair{8u, "q"}, {4u, "d"}, {2u, "w"}, {1u, "b"}}) {
      if (bytes - done < piece)
        continue;
      const MemRef at = s.memory(ptr, offset + done);
      if (value == kNoReg && piece < 4)
        value = s.add_named("zero", 128, {}, 0, held);
      const VReg next = s.function_.new_vreg(RegClass::kVector, held);
      if (value == kNoReg)
        s.add({.rules = s.row(piece == 8 ? "load8" : "load4"), .bits = 128, .def = next, .mem = at});
      else
        s.add({.rules = s.row(std::string("insert_") + name),
               .bits = 128,
               .def = next,
               .uses = {value},
               .imm = done / piece,
               .mem = at});
      value = next;
      done += piece;
    }
    return value;
  }

  static VReg whole_or_part(Selector& s, mlir::Value ptr, int64_t offset, unsigned bytes, unsigned bits,
                            unsigned held) {
    if (bytes * 8 < bits)
      return load_bytes(s, ptr, offset, bytes, bits, held);
    const VReg value = s.function_.new_vreg(RegClass::kVector, held);
    return s.add({.rules = s.row("load"), .bits = bits, .def = value, .mem = s.memory(ptr, offset)});
  }

  static Status store(Selector& s, mlir::Operation* op) {
    auto store = llvm::cast<vec::StoreOp>(op);
    const mlir::Value value = store.getValue();
    const unsigned lane_bytes = llvm::cast<mlir::VectorType>(value.getType()).getElementTypeBitWidth() / 8;
    const unsigned bits = s.bits_of(value);
    const unsigned bytes = static_cast<unsigned>(store.getLanes().value_or(bits / 8 / lane_bytes)) * lane_bytes;
    store_bytes(s, s.reg(value), store.getPtr(), static_cast<int64_t>(store.getOffset()), bytes, bits);
    return {};
  }

  /// The first `bytes` bytes of a vector of `bits`.
  static void store_bytes(Selector& s, VReg value, mlir::Value ptr, int64_t offset, unsigned bytes, unsigned bits) {
    if (bits > 128 && bytes * 8 < bits) {
      const unsigned half = bits / 16;
      store_bytes(s, value, ptr, offset, std::min(bytes, half), bits / 2);
      if (bytes > half)
        store_bytes(s, s.add_named("upper_half", bits, {value}, 0, bits / 2), ptr, offset + half, bytes - half,
                    bits / 2);
      return;
    }
    const auto write = [&](std::string_view name, unsigned width, unsigned at, int64_t imm) {
      s.add({.rules = s.row(name),
             .bits = width,
             .uses = {value},
             .imm = imm,
             .mem = s.memory(ptr, offset + static_cast<int64_t>(at))});
    };
    if (bytes * 8 == bits && bits >= 128)
      return write("store", bits, 0, 0);
    unsigned done = 0;
    for (const auto& [piece, name] : {std::pair{8u, "q"}, {4u, "d"}, {2u, "w"}, {1u, "b"}}) {
      if (bytes - done < piece)
        continue;
      if (done == 0 && piece >= 4)
        write(piece == 8 ? "store8" : "store4", 128, 0, 0);
      else
        write(std::string("extract_") + name, 128, done, done / piece);
      done += piece;
    }
  }

  static Status load_splat(Selector& s, mlir::Operation* op) {
    auto load = llvm::cast<vec::LoadSplatOp>(op);
    s.regs_[load] = s.add({.rules = lane_row("vec.load_splat", lane_name(load), s.features_),
                           .bits = s.width_of(load),
                           .def = s.new_vector(load),
                           .mem = s.memory(load.getPtr(), static_cast<int64_t>(load.getOffset()))});
    return {};
  }

  static Status load_repeated(Selector& s, mlir::Operation* op) {
    auto load = llvm::cast<vec::LoadRepeatedOp>(op);
    s.regs_[load] = s.add({.rules = lane_row("vec.load_repeated", lane_name(load), s.features_),
                           .bits = s.width_of(load),
                           .def = s.new_vector(load),
                           .mem = s.memory(load.getPtr(), static_cast<int64_t>(load.getOffset()))});
    return {};
  }

  static Status gather(Selector& s, mlir::Operation* op) {
    auto gather = llvm::cast<vec::GatherOp>(op);
    const unsigned bits = s.bits_of(gather);
    if (bits < 128)
      return refuse(op, "needs at least 128 bits on x86");
    Selector::Address at = s.address(gather.getPtr());
    at.disp += static_cast<int64_t>(gather.getOffset());
    if (at.index != kNoReg) // the vector takes the index's place
      at = {.base = s.materialise({.base = at.base, .index = at.index, .scale = at.scale}), .disp = at.disp};
    MemRef mem = s.memory(at);
    if (mem.index != kNoReg)
      mem = {.base = s.materialise(at)};
    const VReg index = s.reg(gather.getIndex());
    const VReg mask = s.features_.avx512 ? kNoReg : s.add_named("all_ones", bits, {});
    s.regs_[gather] = s.add({.rules = s.row("gather"),
                             .bits = bits,
                             .def = s.new_vector(gather),
                             .uses = {index, mask},
                             .imm = static_cast<int64_t>(gather.getScale()),
                             .mem = mem});
    return {};
  }

  //--- tiles
  //-------------------------------------------------------------------------------------------------------------
  static Status no_tiles(mlir::Operation* op) { return refuse(op, "needs a target with tiles"); }

  static Status tile_config(Selector& s, mlir::Operation* op) {
    auto config = llvm::cast<vec::TileConfigOp>(op);
    if (!s.features_.amx)
      return no_tiles(op);
    // Palette 1: bytes a row from byte 16 on, 16 bits each, and rows from byte 48 on.
    constexpr size_t kBytes = 64, kRowBytesAt = 16, kRowsAt = 48;
    std::vector<uint8_t> shapes(kBytes);
    shapes[0] = 1;
    for (size_t i = 0; i < config.getRows().size(); ++i) {
      shapes[kRowBytesAt + 2 * i] = static_cast<uint8_t>(config.getBytes()[i]);
      shapes[kRowsAt + i] = static_cast<uint8_t>(config.getRows()[i]);
    }
    s.add({.rules = s.row("ldtilecfg"), .bits = 64, .mem = {.constant = s.pool_.add(shapes)}});
    return {};
  }

  static Status tile_release(Selector& s, mlir::Operation* op) {
    if (!s.features_.amx)
      return no_tiles(op);
    s.add({.rules = s.row("tilerelease"), .bits = 64});
    return {};
  }

  static Status tile_zero(Selector& s, mlir::Operation* op) {
    if (!s.features_.amx)
      return no_tiles(op);
    const int64_t tile = static_cast<int64_t>(llvm::cast<vec::TileZeroOp>(op).getTile());
    s.add({.rules = s.row("tilezero"), .bits = 64, .imm = tile});
    return {};
  }

  /// A load or store of a tile: the stride takes the index's place in the address.
  template <class Op>
  static Status tile_memory(Selector& s, mlir::Operation* op) {
    auto access = llvm::cast<Op>(op);
    if (!s.features_.amx)
      return no_tiles(op);
    Selector::Address at = s.address(access.getPtr());
    at.disp += static_cast<int64_t>(access.getOffset());
    if (at.index != kNoReg || !llvm::isInt<32>(at.disp))
      at = {.base = s.materialise({.base = at.base, .index = at.index, .scale = at.scale}), .disp = at.disp};
    if (!llvm::isInt<32>(at.disp))
      return refuse(op, "has an offset beyond 32 bits");
    const int64_t stride = static_cast<int64_t>(access.getStride());
    at.index = s.add({.rules = s.row("mov_imm"), .bits = 64, .def = s.new_scalar(), .imm = stride});
    s.add({.rules = s.row(std::is_same_v<Op, vec::TileLoadOp> ? "tileloadd" : "tilestored"),
           .bits = 64,
           .imm = static_cast<int64_t>(access.getTile()),
           .mem = s.memory(at)});
    return {};
  }

  template <class Op>
  static Status tile_dot(Selector& s, mlir::Operation* op) {
    if (!s.features_.amx)
      return no_tiles(op);
    auto dot = llvm::cast<Op>(op);
    s.add({.rules = s.row(std::is_same_v<Op, vec::TileDotOp> ? "tdpbssd" : "tdpbf16ps"),
           .bits = 64,
           .imm = static_cast<int64_t>(dot.getAcc() | dot.getLhs() << 8 | dot.getRhs() << 16)});
    return {};
  }

  static Status select_bits(Selector& s, mlir::Operation* op) {
    return s.select_bits(llvm::cast<vec::SelectBitsOp>(op));
  }
  static Status select_negative(Selector& s, mlir::Operation* op) {
    return s.select_negative(llvm::cast<vec::SelectNegativeOp>(op));
  }
  static Status mul_bits(Selector& s, mlir::Operation* op) { return s.mul_bits(llvm::cast<vec::MulBitsOp>(op)); }

  //--- lanes
  //--------------------------------------------------------------------------------------------------------------
  /// Ops of one instruction: their row and their operands as they are.
  static Status one_instruction(Selector& s, mlir::Operation* op) {
    const mlir::Value result = op->getResult(0);
    const VReg def = s.new_vector(result);
    s.add_folding(op, lane_row(op->getName().getStringRef(), lane_name(result), s.features_), s.width_of(result), def,
                  op->getOperands());
    s.regs_[result] = def;
    return {};
  }

  template <class Op>
  static Status shift(Selector& s, mlir::Operation* op) {
    auto shift = llvm::cast<Op>(op);
    s.regs_[shift] = s.add({.rules = lane_row(op->getName().getStringRef(), lane_name(shift), s.features_),
                            .bits = s.width_of(shift),
                            .def = s.new_vector(shift),
                            .uses = {s.reg(shift.getValue())},
                            .imm = static_cast<int64_t>(shift.getAmount())});
    return {};
  }

  static VReg pair_sums(Selector& s, VReg value, unsigned bits) {
    return s.add_named("vpmaddwd", bits, {value, s.splat_constant(1, 2, bits)});
  }

  static Status pair_add(Selector& s, mlir::Operation* op) {
    const mlir::Value value = op->getOperand(0), result = op->getResult(0);
    const VReg def = s.new_vector(result);
    const unsigned bits = s.width_of(value);
    const Selector::Fold fold = s.fold_of(op);
    const VReg ones = s.splat_constant(1, 2, bits);
    if (auto load = llvm::cast_or_null<vec::LoadOp>(fold.load))
      s.add({.rules = s.row("vpmaddwd"),
             .bits = bits,
             .def = def,
             .uses = {ones, kNoReg},
             .mem = s.memory(load.getPtr(), static_cast<int64_t>(load.getOffset())),
             .memory_operand = 1});
    else
      s.add({.rules = s.row("vpmaddwd"), .bits = bits, .def = def, .uses = {s.reg(value), ones}});
    s.regs_[result] = def;
    return {};
  }

  static Status dot4(Selector& s, mlir::Operation* op) {
    auto dot = llvm::cast<vec::Dot4Op>(op);
    const unsigned bits = s.width_of(dot);
    const VReg def = s.new_vector(dot);
    s.regs_[dot] = def;
    if (s.features_.avx_vnni || s.features_.avx512_vnni) {
      s.add_folding(op, s.row("vpdpbusd"), bits, def, op->getOperands());
      return {};
    }
    const VReg acc = s.reg(dot.getAcc());
    const auto add_up = [&](VReg products, VReg to, VReg sum) {
      s.add({.rules = s.row("vpaddd"), .bits = bits, .def = sum, .uses = {to, pair_sums(s, products, bits)}});
    };
    if (dot.getUmax() <= kShortDotBound) {
      const VReg products = s.function_.new_vreg(RegClass::kVector, bits);
      s.add_folding(op, s.row("vpmaddubsw"), bits, products, {dot.getLhs(), dot.getRhs()});
      add_up(products, acc, def);
      return {};
    }
    // Two halves of the unsigned side, each within the bound: its low seven bits, and bit 7.
    const VReg lhs = s.reg(dot.getLhs()), rhs = s.reg(dot.getRhs());
    const VReg low = s.add_named("vpand", bits, {lhs, s.splat_constant(0x7f, 1, bits)});
    const VReg high = s.add_named("vpand", bits, {lhs, s.splat_constant(0x80, 1, bits)});
    const VReg partial = s.new_vector(dot);
    add_up(s.add_named("vpmaddubsw", bits, {low, rhs}), acc, partial);
    add_up(s.add_named("vpmaddubsw", bits, {high, rhs}), partial, def);
    return {};
  }

  static Status convert(Selector& s, mlir::Operation* op) {
    auto convert = llvm::cast<vec::ConvertOp>(op);
    const std::string_view from = lane_name(convert.getValue()), to = lane_name(convert);
    const unsigned bits = s.width_of(convert);
    const VReg def = s.new_vector(convert);
    s.regs_[convert] = def;
    const auto one = [&](std::string_view name, VReg into) {
      s.add_folding(op, s.row(name), bits, into, op->getOperands());
    };
    if (from == "i32") {
      one("vcvtdq2ps", def);
    } else if (from == "f32") {
      one("vcvtps2dq", def);
    } else if (from == "f16") {
      one("vcvtph2ps", def);
    } else if (from == "bf16") {
      const VReg wide = s.new_vector(convert);
      one("vpmovzxwd", wide);
      s.add({.rules = s.row("vpslld"), .bits = bits, .def = def, .uses = {wide}, .imm = 16});
    } else {
      const std::string widths = from == "i16" ? "wd" : to == "i16" ? "bw" : "bd";
      one((convert.getIsUnsigned() ? "vpmovzx" : "vpmovsx") + widths, def);
    }
    return {};
  }

  static Status reduce_add(Selector& s, mlir::Operation* op) {
    const mlir::Value result = op->getResult(0);
    const bool is_float = lane_name(result) == "f32";
    const unsigned bits = s.bits_of(result), width = s.width_of(result);
    VReg sum = s.reg(op->getOperand(0));
    // Each step adds the vector to itself with its halves, then their halves, … exchanged: all lanes end up equal, and
    // each sum has the same two terms as in the op's fixed order.
    const auto step = [&](std::string_view shuffle, int64_t imm) {
      const VReg exchanged = s.add_named(shuffle, width, {sum}, imm, bits);
      sum = s.add_named(is_float ? "vaddps" : "vpaddd", width, {sum, exchanged}, 0, bits);
    };
    if (bits == 512)
      step("swap_quarters", 0x4e);
    if (bits >= 256)
      step("swap_quarters", 0xb1);
    const std::string_view within = is_float ? "vpermilps" : "vpshufd";
    if (bits >= 128)
      step(within, 0x4e);
    step(within, 0xb1);
    s.regs_[result] = sum;
    return {};
  }

  static const llvm::StringMap<Function>& table() {
    static const llvm::StringMap<Function> rows = {
        {"vec.bitcast", nothing},
        {"vec.constant", nothing},
        {"vec.convert", convert},
        {"vec.dot4", dot4},
        {"vec.gather", gather},
        {"vec.index", nothing},
        {"vec.load", load},
        {"vec.load_index", load_field<vec::LoadIndexOp>},
        {"vec.load_ptr", load_field<vec::LoadPtrOp>},
        {"vec.load_repeated", load_repeated},
        {"vec.load_splat", load_splat},
        {"vec.mul_bits", mul_bits},
        {"vec.pair_add", pair_add},
        {"vec.prefetch", prefetch},
        {"vec.ptr_add", nothing},
        {"vec.ptr_offset", ptr_offset},
        {"vec.read_index", read_index},
        {"vec.reduce_add", reduce_add},
        {"vec.select_bits", select_bits},
        {"vec.select_negative", select_negative},
        {"vec.shl", shift<vec::ShlOp>},
        {"vec.shr_s", shift<vec::ShrSOp>},
        {"vec.shr_u", shift<vec::ShrUOp>},
        {"vec.store", store},
        {"vec.table", table_address},
        {"vec.tile_config", tile_config},
        {"vec.tile_dot", tile_dot<vec::TileDotOp>},
        {"vec.tile_dot_bf16", tile_dot<vec::TileDotBf16Op>},
        {"vec.tile_load", tile_memory<vec::TileLoadOp>},
        {"vec.tile_release", tile_release},
        {"vec.tile_store", tile_memory<vec::TileStoreOp>},
        {"vec.tile_zero", tile_zero},
    };
    return rows;
  }
};

Status Selector::select_op(mlir::Operation& op) {
  const auto too_wide = [&](mlir::Value value) {
    return llvm::isa<mlir::VectorType>(value.getType()) && bits_of(value) > features_.max_vector_bits();
  };
  if (llvm::any_of(op.getOperands(), too_wide) || llvm::any_of(op.getResults(), too_wide))
    return OpSelectors::refuse(&op, "has a vector wider than the target's " +
                                        std::to_string(features_.max_vector_bits()) + " bits");
  if (op.getNumResults() > 0 && op.use_empty())
    return {};
  if (const auto row = OpSelectors::table().find(op.getName().getStringRef()); row != OpSelectors::table().end())
    return row->second(*this, &op);
  if (op.getNumResults() == 1 && lane_row(op.getName().getStringRef(), lane_name(op.getResult(0)), features_))
    return OpSelectors::one_instruction(*this, &op);
  return OpSelectors::refuse(&op, "has no x86 selection");
}

} // namespace cortiq::codegen::x86
