#include "test/unit/x86/random_program.h"

#include "mlir/IR/Builders.h"
#include <cstring>
#include <numeric>
#include <random>

namespace cortiq::testing {
namespace {

using namespace cortiq::vec;
using mlir::Type;
using mlir::Value;

/// Builds one kernel; the same seed gives the same kernel.
class ProgramMaker {
public:
  ProgramMaker(uint32_t seed, unsigned bits) : random_(seed), builder_(&test_context()), bits_(bits) {}

  mlir::OwningOpRef<mlir::ModuleOp> make(int ops) {
    mlir::OwningOpRef<mlir::ModuleOp> module = mlir::ModuleOp::create(loc());
    builder_.setInsertionPointToEnd(module->getBody());
    auto kernel = builder_.create<KernelOp>(loc(), "random");
    builder_.setInsertionPoint(kernel.getBlock().getTerminator());
    const Value args = kernel.getBlock().getArgument(0);
    inputs_ = {builder_.create<LoadPtrOp>(loc(), args, 0), builder_.create<LoadPtrOp>(loc(), args, 8)};
    out_ = builder_.create<LoadPtrOp>(loc(), args, 16);
    count_ = builder_.create<LoadIndexOp>(loc(), args, 24);
    stride_ = builder_.create<LoadIndexOp>(loc(), args, 32);
    indices_ = {count_, stride_, builder_.create<IndexOp>(loc(), static_cast<int64_t>(pick(4)))};
    for (int i = 0; i < 4; ++i)
      load();
    while (ops_ < ops)
      step(0);
    for (Value value : values_)
      if (pick(3) == 0)
        store(value);
    return module;
  }

private:
  mlir::Location loc() { return builder_.getUnknownLoc(); }
  uint32_t pick(uint32_t below) { return std::uniform_int_distribution<uint32_t>(0, below - 1)(random_); }
  Type i(unsigned bits) { return builder_.getIntegerType(bits); }
  mlir::VectorType vec(Type lane, unsigned bits) {
    return mlir::VectorType::get({static_cast<int64_t>(bits / lane.getIntOrFloatBitWidth())}, lane);
  }
  mlir::VectorType full(Type lane) { return vec(lane, bits_); }

  /// A value of `type`, made when there is none.
  Value any(mlir::VectorType type) {
    std::vector<Value> fitting;
    for (Value value : values_)
      if (value.getType() == type)
        fitting.push_back(value);
    if (!fitting.empty() && pick(8) != 0)
      return fitting[pick(static_cast<uint32_t>(fitting.size()))];
    return pick(3) == 0 ? constant(type) : loaded(type);
  }

  Value keep(Value value) {
    values_.push_back(value);
    ++ops_;
    return value;
  }

  Value constant(mlir::VectorType type) {
    if (mlir::isa<mlir::FloatType>(type.getElementType()))
      return builder_.create<ConstantOp>(loc(), type, static_cast<double>(pick(16)) - 8);
    if (pick(2) == 0)
      return builder_.create<ConstantOp>(loc(), type, static_cast<double>(pick(200)) - 100);
    llvm::SmallVector<int64_t> lanes;
    for (int64_t lane = 0; lane < type.getNumElements(); ++lane)
      lanes.push_back(static_cast<int64_t>(pick(256)) - 128);
    return builder_.create<ConstantOp>(loc(), type, lanes);
  }

  /// The first input holds random bytes, the second one floats; half-precision lanes come from its end.
  Value loaded(mlir::VectorType type) {
    const Type lane = type.getElementType();
    const bool is_float = lane.isF32(), is_half = lane.isF16() || lane.isBF16();
    Value base = inputs_[is_float || is_half];
    int64_t low = is_half ? kInputBytes / 2 : 0, high = is_float ? kInputBytes / 2 : kInputBytes;
    // Reserve what counters and strides add to the address: at most 1 kB.
    high -= 1024 + static_cast<int64_t>(getVectorBits(type)) / 8;
    const int64_t unit = is_float ? 4 : is_half ? 2 : 1;
    int64_t at = low + static_cast<int64_t>(pick(static_cast<uint32_t>((high - low) / unit))) * unit;
    if (pick(2) == 0)
      base = offset(base, is_float ? 4 : is_half ? 2 : 1);
    if (pick(3) == 0 && at > 64) {
      base = builder_.create<PtrAddOp>(loc(), base, 64);
      at -= 64;
    }
    if (pick(6) == 0)
      return builder_.create<LoadSplatOp>(loc(), type, base, at);
    if (pick(6) == 0)
      return builder_.create<LoadOp>(loc(), type, base, at,
                                     1 + static_cast<int64_t>(pick(static_cast<uint32_t>(type.getNumElements()))));
    return builder_.create<LoadOp>(loc(), type, base, at);
  }

  /// `base` plus a small index times a scale that is a multiple of `unit`: indices are below 8, so below 512 bytes
  /// each.
  Value offset(Value base, int64_t unit) {
    const int64_t factors[] = {1, 2, 3, 4, 8, 9, 16};
    const Value index = indices_[pick(static_cast<uint32_t>(indices_.size()))];
    Value result = builder_.create<PtrOffsetOp>(loc(), base, index, unit * factors[pick(7)]);
    if (pick(4) == 0)
      result = builder_.create<PtrOffsetOp>(loc(), result, indices_[pick(static_cast<uint32_t>(indices_.size()))],
                                            unit * factors[pick(7)]);
    return result;
  }

  void load() {
    const Type lanes[] = {i(8), i(16), i(32), builder_.getF32Type()};
    keep(loaded(full(lanes[pick(4)])));
  }

  void store(Value value) {
    auto type = mlir::cast<mlir::VectorType>(value.getType());
    const int64_t bytes = getVectorBits(type) / 8;
    const int64_t at = pick(static_cast<uint32_t>(kOutputBytes - 1024 - bytes));
    const Value base = pick(2) == 0 ? offset(out_, 1) : out_;
    if (pick(4) == 0)
      builder_.create<StoreOp>(loc(), value, base, at,
                               1 + static_cast<int64_t>(pick(static_cast<uint32_t>(type.getNumElements()))));
    else
      builder_.create<StoreOp>(loc(), value, base, at);
    ++ops_;
  }

  void step(int depth) {
    const mlir::VectorType i8 = full(i(8)), i16 = full(i(16)), i32 = full(i(32)), f32 = full(builder_.getF32Type());
    const mlir::VectorType ints[] = {i8, i16, i32}, adds[] = {i8, i16, i32, f32}, shifts[] = {i16, i32};
    const auto binary = [&]<class Op>(Op*, mlir::VectorType type) {
      const Value a = any(type);
      keep(builder_.create<Op>(loc(), a, pick(8) == 0 ? a : any(type)));
    };
    const auto shift = [&]<class Op>(Op*, mlir::VectorType type) {
      keep(builder_.create<Op>(loc(), any(type), pick(type.getElementTypeBitWidth())));
    };
#define BINARY(OP, TYPE) binary(static_cast<OP*>(nullptr), TYPE)
#define SHIFT(OP) shift(static_cast<OP*>(nullptr), shifts[pick(2)])
    switch (pick(depth < 3 ? 36 : 33)) {
    case 0:
      return BINARY(AndOp, ints[pick(3)]);
    case 1:
      return BINARY(OrOp, ints[pick(3)]);
    case 2:
      return BINARY(XorOp, ints[pick(3)]);
    case 3:
      return BINARY(AndNotOp, ints[pick(3)]);
    case 4:
      return SHIFT(ShlOp);
    case 5:
      return pick(3) == 0 ? BINARY(ShrVOp, i32) : SHIFT(ShrUOp);
    case 6:
      return SHIFT(ShrSOp);
    case 7:
    case 8:
      return BINARY(AddOp, adds[pick(4)]);
    case 9:
      return BINARY(SubOp, adds[pick(4)]);
    case 10:
      return BINARY(MulOp, adds[1 + pick(3)]);
    case 11:
      keep(builder_.create<AbsOp>(loc(), any(ints[pick(3)])));
      return;
    case 12:
      return BINARY(SignOp, i8);
    case 13:
      return BINARY(Lookup16Op, i8);
    case 14: { // products that stay within i16: codes of four bits by anything above -128
      const Value codes = builder_.create<AndOp>(loc(), any(i8), builder_.create<ConstantOp>(loc(), i8, 15));
      keep(builder_.create<Dot2Op>(loc(), codes, any(i8), 15));
      return;
    }
    case 15:
      keep(builder_.create<PairAddOp>(loc(), any(i16)));
      return;
    case 16: {
      const Value acc = any(i32), u = any(i8);
      keep(builder_.create<Dot4Op>(loc(), acc, u, any(i8)));
      return;
    }
    case 17: {
      const Value codes = builder_.create<AndOp>(loc(), any(i8), builder_.create<ConstantOp>(loc(), i8, 127));
      const Value acc = any(i32);
      keep(builder_.create<Dot4Op>(loc(), acc, codes, any(i8), 128));
      return;
    }
    case 18: {
      const Value a = any(i16);
      keep(builder_.create<MulPairsOp>(loc(), a, any(i16)));
      return;
    }
    case 19:
      keep(builder_.create<ConvertOp>(loc(), f32, any(i32)));
      return;
    case 20:
      keep(builder_.create<ConvertOp>(loc(), i32, any(f32)));
      return;
    case 21:
      keep(builder_.create<ConvertOp>(loc(), f32, any(vec(builder_.getF16Type(), bits_ / 2))));
      return;
    case 22:
      keep(builder_.create<ConvertOp>(loc(), f32, any(vec(builder_.getBF16Type(), bits_ / 2))));
      return;
    case 23:
      if (bits_ >= 256)
        keep(builder_.create<ConvertOp>(loc(), i32, any(vec(i(8), bits_ / 4)), pick(2)));
      return;
    case 24:
      keep(builder_.create<ConvertOp>(loc(), i16, any(vec(i(8), bits_ / 2)), pick(2)));
      return;
    case 25:
      keep(builder_.create<ConvertOp>(loc(), i32, any(vec(i(16), bits_ / 2)), pick(2)));
      return;
    case 26:
    case 27: {
      const Value a = any(f32), b = any(f32);
      keep(builder_.create<FmaOp>(loc(), a, b, any(f32)));
      return;
    }
    case 28:
      if (pick(2) == 0) { // words of few, so that tests are met again
        const Value word = any(i32), other = any(f32);
        const int64_t bits = int64_t{1} << pick(3);
        keep(pick(2) ? Value(builder_.create<SelectBitsOp>(loc(), word, bits, any(f32), other))
                     : Value(builder_.create<MulBitsOp>(loc(), word, bits, any(f32), other)));
        return;
      }
      return pick(2) ? BINARY(FMinOp, f32) : BINARY(FMaxOp, f32);
    case 29:
      return BINARY(DivOp, f32);
    case 30:
      keep(builder_.create<ReduceAddOp>(loc(), any(pick(2) ? f32 : i32)));
      return;
    case 31: {
      // Indices within 0 to 255, times 4: inside the first input.
      const Value index = builder_.create<AndOp>(loc(), any(i32), builder_.create<ConstantOp>(loc(), i32, 255));
      if (pick(3) == 0)
        keep(builder_.create<GatherOp>(loc(), i32, table(), 0, index, 2));
      else
        keep(builder_.create<GatherOp>(loc(), i32, inputs_[0], static_cast<int64_t>(pick(64)), index, 4));
      return;
    }
    case 32:
      if (pick(3) == 0)
        builder_.create<PrefetchOp>(loc(), inputs_[pick(2)], static_cast<int64_t>(pick(4096)));
      if (pick(2) == 0)
        keep(builder_.create<BitcastOp>(loc(), ints[pick(3)], any(ints[pick(3)])));
      else
        store(any(adds[pick(4)]));
      return;
    default:
      return loop(depth);
    }
#undef BINARY
#undef SHIFT
  }

  /// One of a few tables that an index within 0 to 255, times 2, stays inside.
  Value table() {
    llvm::SmallVector<int16_t> entries(260 + pick(3));
    std::iota(entries.begin(), entries.end(), int16_t{7});
    const auto type = mlir::RankedTensorType::get({static_cast<int64_t>(entries.size())}, i(16));
    return builder_.create<TableOp>(loc(), mlir::DenseElementsAttr::get(type, llvm::ArrayRef<int16_t>(entries)));
  }

  Value bound(int64_t below) {
    return pick(2) == 0 ? count_
                        : builder_.create<IndexOp>(loc(), static_cast<int64_t>(pick(static_cast<uint32_t>(below))));
  }

  void loop(int depth) {
    llvm::SmallVector<Value> inits;
    const uint32_t carried = pick(7);
    const mlir::VectorType kinds[] = {full(i(8)), full(i(16)), full(i(32)), full(builder_.getF32Type())};
    for (uint32_t n = 0; n < carried; ++n)
      inits.push_back(any(kinds[pick(4)]));
    const bool carries_index = pick(4) == 0;
    if (carries_index)
      inits.push_back(indices_[pick(static_cast<uint32_t>(indices_.size()))]);
    const bool carries_pointer = pick(4) == 0;
    if (carries_pointer)
      inits.push_back(pick(2) == 0 ? offset(inputs_[0], 1) : inputs_[0]);
    const Value lo = pick(3) == 0 ? bound(4) : builder_.create<IndexOp>(loc(), static_cast<int64_t>(pick(3)));
    const Value hi = bound(7);
    auto loop = builder_.create<LoopOp>(loc(), lo, hi, 1 + static_cast<int64_t>(pick(2)), inits);
    const size_t values = values_.size(), indices = indices_.size();
    {
      mlir::OpBuilder::InsertionGuard guard(builder_);
      builder_.setInsertionPointToEnd(&loop.getBlock());
      indices_.push_back(loop.getInductionVar());
      for (Value argument : loop.getCarried().take_front(carried))
        values_.push_back(argument);
      if (carries_pointer) // within the first quarter: it advances by up to 7 * 7 * 7 times 1 byte in nested loops
        keep(builder_.create<LoadOp>(loc(), full(i(8)), loop.getCarried().back(), static_cast<int64_t>(pick(256))));
      for (uint32_t n = 2 + pick(12); n > 0; --n)
        step(depth + 1);
      llvm::SmallVector<Value> yielded;
      for (uint32_t n = 0; n < carried; ++n) {
        const auto type = mlir::cast<mlir::VectorType>(inits[n].getType());
        // Often something fresh, sometimes another carried value: then the loop's moves form a permutation.
        yielded.push_back(any(type));
      }
      if (carries_index)
        yielded.push_back(pick(2) ? loop.getInductionVar() : indices_[pick(static_cast<uint32_t>(indices_.size()))]);
      if (carries_pointer)
        yielded.push_back(pick(3) == 0 ? Value(loop.getCarried().back())
                                       : Value(builder_.create<PtrOffsetOp>(loc(), inputs_[0], loop.getInductionVar(),
                                                                            1 + static_cast<int64_t>(pick(40)))));
      builder_.create<YieldOp>(loc(), yielded);
    }
    values_.resize(values);
    indices_.resize(indices);
    for (uint32_t n = 0; n < carried; ++n)
      keep(loop.getResult(n));
    if (carries_index)
      indices_.push_back(loop.getResult(carried));
  }

  std::mt19937 random_;
  mlir::OpBuilder builder_;
  unsigned bits_;
  std::vector<Value> values_, indices_, inputs_;
  Value out_, count_, stride_;
  int ops_ = 0;
};

} // namespace

mlir::OwningOpRef<mlir::ModuleOp> random_program(uint32_t seed, unsigned bits, int ops) {
  return ProgramMaker(seed, bits).make(ops);
}

void fill_inputs(uint32_t seed, GuardedBuffer& in0, GuardedBuffer& in1) {
  std::mt19937 random(seed);
  // No -128: vec.dot2 excludes it on its signed side.
  for (uint8_t& byte : in0.bytes())
    byte = static_cast<uint8_t>(static_cast<int>(random() % 255) - 127);
  for (size_t at = 0; at < kInputBytes / 2; at += 4) {
    const float value = (static_cast<float>(random() % 20000) - 10000) / 64;
    std::memcpy(in1.data() + at, &value, 4);
  }
  // Exponents away from infinity and NaN, as f16 and as bf16.
  for (size_t at = kInputBytes / 2; at < kInputBytes; at += 2) {
    const uint16_t half = static_cast<uint16_t>(random() & 0xBBFF);
    std::memcpy(in1.data() + at, &half, 2);
  }
}

} // namespace cortiq::testing
