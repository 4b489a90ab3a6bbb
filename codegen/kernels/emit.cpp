#include "codegen/kernels/emit.h"

namespace cortiq::codegen {

using namespace mlir;

Emit::Emit(OpBuilder& builder, Location loc, Block* constants, unsigned lanes, bool byte_tables, bool signed_levels,
           bool quick_gathers)
    : b_(builder), loc_(loc), constants_(constants), lanes_(lanes), byte_tables_(byte_tables),
      signed_levels_(signed_levels), quick_gathers_(quick_gathers) {}

Value Emit::constant(DenseElementsAttr value) {
  Value& cached = constant_cache_[value.getAsOpaquePointer()];
  if (!cached) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(constants_);
    cached = b_.create<vec::ConstantOp>(loc_, value.getType(), value);
  }
  return cached;
}

Value Emit::splat_i8(int value) {
  return constant(DenseElementsAttr::get(i8(), APInt(8, static_cast<uint64_t>(value) & 0xff)));
}
Value Emit::splat_i32(int32_t value) {
  return constant(DenseElementsAttr::get(i32(), APInt(32, static_cast<uint32_t>(value))));
}
Value Emit::splat_f32(float value) {
  return constant(DenseElementsAttr::get(f32(), APFloat(value)));
}
Value Emit::lanes_i32(const std::vector<int32_t>& values) {
  return constant(DenseElementsAttr::get(i32(), ArrayRef<int32_t>(values)));
}
Value Emit::table16(const std::vector<int8_t>& values) {
  std::vector<int8_t> repeated;
  for (unsigned part = 0; part < vector_bytes() / 16; ++part)
    repeated.insert(repeated.end(), values.begin(), values.end());
  return constant(DenseElementsAttr::get(i8(), ArrayRef<int8_t>(repeated)));
}
Value Emit::bytes(const std::vector<uint8_t>& values) {
  std::vector<uint8_t> repeated;
  while (repeated.size() < vector_bytes())
    repeated.insert(repeated.end(), values.begin(), values.end());
  return constant(DenseElementsAttr::get(i8(), ArrayRef<uint8_t>(repeated)));
}
Value Emit::index(int64_t value) {
  Value& cached = index_cache_[value];
  if (!cached) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(constants_);
    cached = b_.create<vec::IndexOp>(loc_, value);
  }
  return cached;
}

Value Emit::table(DenseElementsAttr entries) {
  Value& cached = constant_cache_[entries.getAsOpaquePointer()];
  if (!cached) {
    OpBuilder::InsertionGuard guard(b_);
    b_.setInsertionPointToStart(constants_);
    cached = b_.create<vec::TableOp>(loc_, entries);
  }
  return cached;
}
Value Emit::table(std::span<const uint64_t> entries) {
  const auto type = RankedTensorType::get({int64_t(entries.size())}, b_.getI64Type());
  return table(DenseElementsAttr::get(type, ArrayRef<uint64_t>(entries.data(), entries.size())));
}
Value Emit::table(std::span<const uint32_t> entries) {
  const auto type = RankedTensorType::get({int64_t(entries.size())}, b_.getI32Type());
  return table(DenseElementsAttr::get(type, ArrayRef<uint32_t>(entries.data(), entries.size())));
}

Value Emit::load_ptr(Value pointer, int64_t disp) {
  return b_.create<vec::LoadPtrOp>(loc_, pointer, disp);
}
Value Emit::load_index(Value pointer, int64_t disp) {
  return b_.create<vec::LoadIndexOp>(loc_, pointer, disp);
}

Value Emit::read_index(Address a) {
  return b_.create<vec::ReadIndexOp>(loc_, a.base, a.disp);
}
Value Emit::load(VectorType type, Address a, unsigned lanes) {
  if (lanes != 0 && lanes < type.getNumElements())
    return b_.create<vec::LoadOp>(loc_, type, a.base, a.disp, int64_t(lanes));
  return b_.create<vec::LoadOp>(loc_, type, a.base, a.disp);
}
void Emit::store(Value v, Address a, unsigned lanes) {
  if (lanes != 0 && lanes < cast<VectorType>(v.getType()).getNumElements())
    b_.create<vec::StoreOp>(loc_, v, a.base, a.disp, int64_t(lanes));
  else
    b_.create<vec::StoreOp>(loc_, v, a.base, a.disp);
}
Value Emit::load_splat_f32(Address a) {
  return b_.create<vec::LoadSplatOp>(loc_, f32(), a.base, a.disp);
}
Value Emit::load_splat_i32(Address a) {
  return b_.create<vec::LoadSplatOp>(loc_, i32(), a.base, a.disp);
}
Value Emit::load_repeated(Address a) {
  return lanes_ == 4 ? load(i8(), a) : Value(b_.create<vec::LoadRepeatedOp>(loc_, i8(), a.base, a.disp));
}
Value Emit::gather_f32(Address a, Value index, int scale) {
  return b_.create<vec::GatherOp>(loc_, f32(), a.base, a.disp, index, int64_t(scale));
}
Value Emit::gather_i32(Address a, Value index, int scale) {
  return b_.create<vec::GatherOp>(loc_, i32(), a.base, a.disp, index, int64_t(scale));
}
void Emit::prefetch(Address a, bool near) {
  b_.create<vec::PrefetchOp>(loc_, a.base, a.disp, near);
}

void Emit::tile_config(const std::vector<int64_t>& rows, const std::vector<int64_t>& bytes) {
  b_.create<vec::TileConfigOp>(loc_, ArrayRef<int64_t>(rows), ArrayRef<int64_t>(bytes));
}
void Emit::tile_release() {
  b_.create<vec::TileReleaseOp>(loc_);
}
void Emit::tile_zero(unsigned tile) {
  b_.create<vec::TileZeroOp>(loc_, tile);
}
void Emit::tile_load(unsigned tile, Address a, int64_t stride) {
  b_.create<vec::TileLoadOp>(loc_, tile, a.base, a.disp, stride);
}
void Emit::tile_store(unsigned tile, Address a, int64_t stride) {
  b_.create<vec::TileStoreOp>(loc_, tile, a.base, a.disp, stride);
}
void Emit::tile_dot(unsigned acc, unsigned lhs, unsigned rhs) {
  b_.create<vec::TileDotOp>(loc_, acc, lhs, rhs);
}
void Emit::tile_dot_bf16(unsigned acc, unsigned lhs, unsigned rhs) {
  b_.create<vec::TileDotBf16Op>(loc_, acc, lhs, rhs);
}

Value Emit::offset(Value pointer, int64_t bytes) {
  return bytes == 0 ? pointer : Value(b_.create<vec::PtrAddOp>(loc_, pointer, b_.getI64IntegerAttr(bytes)));
}
Value Emit::offset(Value pointer, Value index, int64_t scale) {
  return b_.create<vec::PtrOffsetOp>(loc_, pointer, index, b_.getI64IntegerAttr(scale));
}

Value Emit::bitcast(Value v, VectorType type) {
  return v.getType() == type ? v : Value(b_.create<vec::BitcastOp>(loc_, type, v));
}
Value Emit::bit_and(Value a, Value b) {
  return b_.create<vec::AndOp>(loc_, a, b);
}
Value Emit::bit_or(Value a, Value b) {
  return b_.create<vec::OrOp>(loc_, a, b);
}
Value Emit::bit_xor(Value a, Value b) {
  return b_.create<vec::XorOp>(loc_, a, b);
}
Value Emit::bit_and_not(Value a, Value b) {
  return b_.create<vec::AndNotOp>(loc_, a, b);
}
Value Emit::shl(Value v, unsigned bits) {
  return b_.create<vec::ShlOp>(loc_, v, int64_t(bits));
}
Value Emit::shr_u(Value v, unsigned bits) {
  return b_.create<vec::ShrUOp>(loc_, v, int64_t(bits));
}
Value Emit::shr_s(Value v, unsigned bits) {
  return b_.create<vec::ShrSOp>(loc_, v, int64_t(bits));
}
Value Emit::shr_v(Value v, Value amounts) {
  return b_.create<vec::ShrVOp>(loc_, v, amounts);
}
Value Emit::select_bits(Value word, uint32_t bits, Value set, Value clear) {
  return b_.create<vec::SelectBitsOp>(loc_, word, int64_t(bits), set, clear);
}
Value Emit::mul_bits(Value word, uint32_t bits, Value value, Value factor) {
  return b_.create<vec::MulBitsOp>(loc_, word, int64_t(bits), value, factor);
}
Value Emit::add(Value a, Value b) {
  return b_.create<vec::AddOp>(loc_, a, b);
}
Value Emit::sub(Value a, Value b) {
  return b_.create<vec::SubOp>(loc_, a, b);
}
Value Emit::mul(Value a, Value b) {
  return b_.create<vec::MulOp>(loc_, a, b);
}
Value Emit::fma(Value a, Value b, Value c) {
  return b_.create<vec::FmaOp>(loc_, a, b, c);
}
Value Emit::abs(Value v) {
  return b_.create<vec::AbsOp>(loc_, v);
}
Value Emit::sign(Value x, Value w) {
  return b_.create<vec::SignOp>(loc_, x, w);
}
Value Emit::lookup16(Value table, Value index) {
  return b_.create<vec::Lookup16Op>(loc_, table, index);
}
Value Emit::lookup64(Value table, Value index) {
  return b_.create<vec::Lookup64Op>(loc_, table, index);
}
Value Emit::lookup128(Value low, Value high, Value index) {
  return b_.create<vec::Lookup128Op>(loc_, index, low, high);
}
Value Emit::select_negative(Value signs, Value negative, Value other) {
  return b_.create<vec::SelectNegativeOp>(loc_, signs, negative, other);
}
Value Emit::blend_bits(Value mask, Value ones, Value zeros) {
  return b_.create<vec::BlendBitsOp>(loc_, mask, ones, zeros);
}
Value Emit::bit_fields(Value first, Value value) {
  return b_.create<vec::BitFieldsOp>(loc_, first, value);
}
Value Emit::dot2(Value u, Value s, unsigned umax, unsigned xmax) {
  return b_.create<vec::Dot2Op>(loc_, u, s, int64_t(umax), int64_t(xmax));
}
Value Emit::pair_add(Value pairs) {
  return b_.create<vec::PairAddOp>(loc_, pairs);
}
Value Emit::mul_pairs(Value a, Value b) {
  return b_.create<vec::MulPairsOp>(loc_, a, b);
}
Value Emit::dot4(Value acc, Value u, Value s, unsigned umax) {
  return b_.create<vec::Dot4Op>(loc_, acc, u, s, int64_t(umax));
}
Value Emit::signed_dot4(Value acc, Value bytes, Value codes) {
  return b_.create<vec::SignedDot4Op>(loc_, acc, bytes, codes);
}
Value Emit::dot8_pairs(Value acc, Value lhs, Value rhs) {
  return b_.create<vec::Dot8PairsOp>(loc_, acc, lhs, rhs);
}
Value Emit::interleave(Value a, Value b, unsigned bytes, bool high) {
  return b_.create<vec::InterleaveOp>(loc_, a, b, int64_t(bytes), high);
}
Value Emit::half_bits_to_f32(Value bits) {
  // Two exact scalings rebias the exponent, subnormals included; the way over 2^240 turns the largest exponent into
  // infinity.
  Value sign = shl(bit_and(bits, splat_i32(0x8000)), 16);
  Value magnitude = bitcast(shl(bit_and(bits, splat_i32(0x7fff)), 13), f32());
  Value rebias = splat_f32(0x1p112f);
  Value value = mul(mul(mul(magnitude, rebias), rebias), splat_f32(0x1p-112f));
  return bitcast(bit_or(bitcast(value, i32()), sign), f32());
}
Value Emit::widen_unsigned(Value v) {
  return b_.create<vec::ConvertOp>(loc_, i32(), v, true);
}
Value Emit::pack_bf16(Value low, Value high) {
  return b_.create<vec::PackBf16Op>(loc_, VectorType::get({lanes_ * 2}, b_.getBF16Type()), low, high);
}
Value Emit::reduce_add(Value v) {
  return b_.create<vec::ReduceAddOp>(loc_, v);
}
Value Emit::to_i32(Value v) {
  return b_.create<vec::ConvertOp>(loc_, i32(), v);
}
Value Emit::fmin(Value a, Value b) {
  return b_.create<vec::FMinOp>(loc_, a, b);
}
Value Emit::fmax(Value a, Value b) {
  return b_.create<vec::FMaxOp>(loc_, a, b);
}
Value Emit::to_f32(Value v) {
  return b_.create<vec::ConvertOp>(loc_, f32(), v);
}

std::vector<Value> Emit::loop(Value lo, Value hi, int64_t step, const std::vector<Value>& init,
                              const std::function<std::vector<Value>(Value, const std::vector<Value>&)>& body) {
  auto op = b_.create<vec::LoopOp>(loc_, lo, hi, step, init,
                                   [&](OpBuilder& inner, Location, Value counter, ValueRange carried) {
                                     OpBuilder::InsertionGuard guard(b_);
                                     b_.setInsertionPoint(inner.getInsertionBlock(), inner.getInsertionPoint());
                                     std::vector<Value> next = body(counter, {carried.begin(), carried.end()});
                                     // The op's builder appends the terminator at its own insertion point, which is the
                                     // block's end.
                                     inner.setInsertionPointToEnd(b_.getInsertionBlock());
                                     return SmallVector<Value>(next.begin(), next.end());
                                   });
  auto results = op.getResults();
  return {results.begin(), results.end()};
}

} // namespace cortiq::codegen
