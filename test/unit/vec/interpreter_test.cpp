// The interpreter against numbers worked out by hand: it is what generated code is held against.

#include "dialects/Vec/Interp/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <cmath>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::vec {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

struct Args {
  const void* in;
  void* out;
  int64_t count;
};

/// Runs `body` on %p = in, %o = out, %n = count and returns `lanes` results of type T.
template <class T, class In>
std::vector<T> run(const std::string& body, const std::vector<In>& in, size_t lanes, int64_t count = 0) {
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<VecDialect>();
  auto module = mlir::parseSourceString<mlir::ModuleOp>("vec.kernel @k(%args: !vec.ptr) {\n%p = vec.load_ptr %args[0]\n"
                                                        "%o = vec.load_ptr %args[8]\n%n = vec.load_index %args[16]\n" +
                                                            body + "\n}",
                                                        &context);
  EXPECT_TRUE(module) << body;
  std::vector<T> out(lanes);
  if (!module)
    return out;
  const Args args{in.data(), out.data(), count};
  EXPECT_TRUE(succeeded(interpretKernel(*module->getOps<KernelOp>().begin(), &args)));
  return out;
}

TEST(VecInterpreter, SignTakesTheSignOrZero) {
  const std::vector<int8_t> in{5, 5, 5, -128, -128, 7, -7, 0, /*w*/ 3, -3, 0, -1, 1, -128, -128, -1};
  EXPECT_THAT(run<int8_t>("%x = vec.load %p[0] : vector<8xi8>\n%w = vec.load %p[8] : vector<8xi8>\n"
                          "%r = vec.sign %x, %w : vector<8xi8>\nvec.store %r, %o[0] : vector<8xi8>",
                          in, 8),
              ElementsAre(5, -5, 0, -128, -128, -7, 7, 0)); // -(-128) wraps
}

TEST(VecInterpreter, Lookup16StaysInIts128Bits) {
  std::vector<uint8_t> in(64, 0x80);
  for (int i = 0; i < 32; ++i)
    in[i] = static_cast<uint8_t>(100 + i);
  in[32] = 3, in[33] = 0x8f, in[48] = 3, in[49] = 0x7f; // bits 4 to 6 of an index do not count
  const auto out = run<uint8_t>("%t = vec.load %p[0] : vector<32xi8>\n%i = vec.load %p[32] : vector<32xi8>\n"
                                "%r = vec.lookup16 %t, %i : vector<32xi8>\nvec.store %r, %o[0] : vector<32xi8>",
                                in, 32);
  EXPECT_EQ(out[0], 103);
  EXPECT_EQ(out[1], 0);
  EXPECT_EQ(out[16], 119);
  EXPECT_EQ(out[17], 131);
}

TEST(VecInterpreter, DotProductsTakeTheFirstSideUnsigned) {
  std::vector<uint8_t> in(16, 0);
  const std::vector<uint8_t> u{255, 255, 255, 255, 1, 2, 3, 4}, s{0x80, 0x80, 0x80, 0x80, 0xff, 1, 0xff, 1};
  std::copy(u.begin(), u.end(), in.begin());
  std::copy(s.begin(), s.end(), in.begin() + 8);
  EXPECT_THAT(run<int32_t>("%u = vec.load %p[0] : vector<8xi8>\n%s = vec.load %p[8] : vector<8xi8>\n"
                           "%a = vec.constant dense<10> : vector<2xi32>\n"
                           "%r = vec.dot4 %a, %u, %s {umax = 255 : i64} : vector<2xi32>, vector<8xi8>\n"
                           "vec.store %r, %o[0] : vector<2xi32>",
                           in, 2),
              ElementsAre(10 - 4 * 255 * 128, 10 + 2));
}

TEST(VecInterpreter, RoundsToNearestEvenAndMarksWhatDoesNotFit) {
  const std::vector<float> in{0.5f, 1.5f, 2.5f, -0.5f, 2147483520.0f, 2147483648.0f, -2147483648.0f, NAN};
  EXPECT_THAT(run<int32_t>("%x = vec.load %p[0] : vector<8xf32>\n%r = vec.convert %x : vector<8xf32> to vector<8xi32>\n"
                           "vec.store %r, %o[0] : vector<8xi32>",
                           in, 8),
              ElementsAre(0, 2, 2, 0, 2147483520, INT32_MIN, INT32_MIN, INT32_MIN));
}

TEST(VecInterpreter, HalfPrecisionWidens) {
  const std::vector<uint16_t> in{0x3c00, 0xc000, 0x0001, 0x7bff, 0x3f80, 0xbf80, 0x0001, 0x7f7f};
  EXPECT_THAT(run<float>("%h = vec.load %p[0] : vector<4xf16>\n%f = vec.convert %h : vector<4xf16> to vector<4xf32>\n"
                         "vec.store %f, %o[0] : vector<4xf32>\n"
                         "%b = vec.load %p[8] : vector<4xbf16>\n%g = vec.convert %b : vector<4xbf16> to vector<4xf32>\n"
                         "vec.store %g, %o[16] : vector<4xf32>",
                         in, 8),
              ElementsAre(1.0f, -2.0f, 0x1p-24f, 65504.0f, 1.0f, -1.0f, 0x1p-133f, 0x1.fep127f));
}

TEST(VecInterpreter, MinAndMaxGiveTheSecondForNaN) {
  const std::vector<float> in{NAN, 1, 3, -0.0f, /*b*/ 5, NAN, 2, 0.0f};
  const auto out = run<float>("%a = vec.load %p[0] : vector<4xf32>\n%b = vec.load %p[16] : vector<4xf32>\n"
                              "%r = vec.fmin %a, %b : vector<4xf32>\nvec.store %r, %o[0] : vector<4xf32>\n"
                              "%s = vec.fmax %a, %b : vector<4xf32>\nvec.store %s, %o[16] : vector<4xf32>",
                              in, 8);
  EXPECT_EQ(out[0], 5);
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_EQ(out[2], 2);
  EXPECT_FALSE(std::signbit(out[3])); // equal: the second
  EXPECT_EQ(out[6], 3);
}

TEST(VecInterpreter, LanesShiftByTheirOwnAmounts) {
  const std::vector<uint32_t> in{0x80000000, 0x80000000, 7, 7, /*amounts*/ 31, 0, 32, 0xffffffff};
  EXPECT_THAT(run<uint32_t>("%x = vec.load %p[0] : vector<4xi32>\n%s = vec.load %p[16] : vector<4xi32>\n"
                            "%r = vec.shr_v %x, %s : vector<4xi32>\nvec.store %r, %o[0] : vector<4xi32>",
                            in, 4),
              ElementsAre(1, 0x80000000, 0, 0));
}

TEST(VecInterpreter, BitsOfWordsChooseLanes) {
  const std::vector<uint32_t> in{0, 4, 3, 0x80000004, /*set*/ 1, 2, 3, 4, /*clear*/ 5, 6, 7, 8};
  EXPECT_THAT(run<uint32_t>("%w = vec.load %p[0] : vector<4xi32>\n%s = vec.load %p[16] : vector<4xi32>\n"
                            "%c = vec.load %p[32] : vector<4xi32>\n"
                            "%r = vec.select_bits %w, 4, %s, %c : vector<4xi32>, vector<4xi32>\n"
                            "vec.store %r, %o[0] : vector<4xi32>",
                            in, 4),
              ElementsAre(5, 2, 7, 4));
  EXPECT_THAT(run<float>("%w = vec.load %p[0] : vector<4xi32>\n%x = vec.constant dense<1.5> : vector<4xf32>\n"
                         "%f = vec.constant dense<2.0> : vector<4xf32>\n"
                         "%r = vec.mul_bits %w, 6, %x, %f : vector<4xi32>, vector<4xf32>\n"
                         "vec.store %r, %o[0] : vector<4xf32>",
                         in, 4),
              ElementsAre(1.5f, 3.0f, 3.0f, 3.0f));
}

TEST(VecInterpreter, TablesAndIndicesAreRead) {
  // The index in memory is unsigned and picks the table's entry by way of an address.
  const std::vector<uint32_t> in{0xffffffff, 2};
  EXPECT_THAT(run<uint16_t>("%t = vec.table dense<[258, 3, 4, 5, 6, 7]> : tensor<6xi16>\n%i = vec.read_index %p[4]\n"
                            "%q = vec.ptr_offset %t, %i * 2\n%v = vec.load %q[-4] : vector<4xi16>\n"
                            "vec.store %v, %o[0] : vector<4xi16>\n%w = vec.load %q[0] : vector<4xi16>\n"
                            "vec.store %w, %o[8] : vector<4xi16>",
                            in, 8),
              ElementsAre(258, 3, 4, 5, 4, 5, 6, 7));
}

TEST(VecInterpreter, TheReductionsOrderIsFixed) {
  // (1 + 1e8) + (-1e8 + 1) loses both ones; halves first: (1 + -1e8) + (1e8 + 1) as well, but in another order.
  const std::vector<float> in{1.0f, 1e8f, -1e8f, 1.0f};
  const float expected = (1.0f + -1e8f) + (1e8f + 1.0f);
  EXPECT_THAT(run<float>("%x = vec.load %p[0] : vector<4xf32>\n%r = vec.reduce_add %x : vector<4xf32>\n"
                         "vec.store %r, %o[0] : vector<4xf32>",
                         in, 4),
              ElementsAreArray({expected, expected, expected, expected}));
}

TEST(VecInterpreter, PartialLoadsFillWithZerosAndPartialStoresStop) {
  const std::vector<int32_t> in{1, 2, 3, 4};
  EXPECT_THAT(
      run<int32_t>("%x = vec.load %p[0] {lanes = 3 : i64} : vector<4xi32>\nvec.store %x, %o[0] : vector<4xi32>\n"
                   "vec.store %x, %o[16] {lanes = 2 : i64} : vector<4xi32>",
                   in, 8),
      ElementsAre(1, 2, 3, 0, 1, 2, 0, 0));
}

TEST(VecInterpreter, LoopsCountAndCarry) {
  const std::vector<int32_t> in{1, 2, 3, 4, 5, 6, 7, 8};
  const std::string body =
      "%c0 = vec.index 0\n%z = vec.constant dense<0> : vector<2xi32>\n"
      "%r:2 = vec.loop %i = %c0 to %n step 2 iter_args(%a = %z, %q = %p) -> (vector<2xi32>, !vec.ptr) {\n"
      "  %v = vec.load %q[0] : vector<2xi32>\n  %s = vec.add %a, %v : vector<2xi32>\n"
      "  %t = vec.ptr_offset %p, %i * 4\n  %u = vec.ptr_add %t, 8\n"
      "  vec.yield %s, %u : vector<2xi32>, !vec.ptr\n}\nvec.store %r#0, %o[0] : vector<2xi32>";
  EXPECT_THAT(run<int32_t>(body, in, 2, 0), ElementsAre(0, 0));
  EXPECT_THAT(run<int32_t>(body, in, 2, -5), ElementsAre(0, 0));
  EXPECT_THAT(run<int32_t>(body, in, 2, 3), ElementsAre(1 + 3, 2 + 4)); // two trips: i = 0 and 2
  EXPECT_THAT(run<int32_t>(body, in, 2, 8), ElementsAre(1 + 3 + 5 + 7, 2 + 4 + 6 + 8));
}

} // namespace
} // namespace cortiq::vec
