// What the generated code must look like: no needless moves, no spills while registers last, loads inside instructions.

#include "test/unit/x86/kernel_harness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

codegen::MachineCode compile(const std::string& body, const std::string& target = "x86-64-v3") {
  auto parsed = testing::parse_kernel("vec.kernel @k(%args: !vec.ptr) {\n  %p = vec.load_ptr %args[0]\n"
                                      "  %q = vec.load_ptr %args[8]\n  %o = vec.load_ptr %args[16]\n"
                                      "  %n = vec.load_index %args[24]\n  %c0 = vec.index 0\n" +
                                      body + "}\n");
  EXPECT_TRUE(parsed.kernel) << body;
  const auto code = codegen::emit_x86(parsed.kernel, *codegen::x86_target(target));
  EXPECT_TRUE(code.ok()) << code.status().message();
  return code.ok() ? *code : codegen::MachineCode();
}

std::string assembly(const std::string& body, const std::string& target = "x86-64-v3") {
  return print_asm(compile(body, target));
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST(X86Folding, ALoadOfOneUseIsAMemoryOperand) {
  EXPECT_THAT(assembly("%a = vec.load %p[0] : vector<8xf32>\n%b = vec.load %q[32] : vector<8xf32>\n"
                       "%r = vec.mul %a, %b : vector<8xf32>\nvec.store %r, %o[0] : vector<8xf32>\n"),
              ContainsRegex("vmulps\tymm0, ymm0, ymmword ptr \\[r.. *"));
  EXPECT_THAT(assembly("%h = vec.load %p[0] : vector<8xf16>\n%r = vec.convert %h : vector<8xf16> to vector<8xf32>\n"
                       "vec.store %r, %o[0] : vector<8xf32>\n"),
              ContainsRegex("vcvtph2ps\tymm0, xmmword ptr"));
}

TEST(X86Folding, NotAcrossAStore) {
  EXPECT_THAT(assembly("%a = vec.load %p[0] : vector<8xf32>\n%b = vec.load %q[32] : vector<8xf32>\n"
                       "vec.store %b, %o[0] : vector<8xf32>\n"
                       "%r = vec.mul %b, %a : vector<8xf32>\nvec.store %r, %o[32] : vector<8xf32>\n"),
              ContainsRegex("vmulps\tymm., ymm., ymm."));
}

TEST(X86Folding, NotWhenTheOperationReadsFurtherThanTheLoad) {
  EXPECT_THAT(assembly("%a = vec.load %p[0] : vector<8xi8>\n%b = vec.load %q[0] : vector<8xi8>\n"
                       "%r = vec.add %a, %b : vector<8xi8>\nvec.store %r, %o[0] : vector<8xi8>\n"),
              ContainsRegex("vpaddb\txmm., xmm., xmm."));
}

TEST(X86Folding, ThroughABitcast) {
  EXPECT_THAT(assembly("%u = vec.load %p[0] : vector<32xi8>\n%v = vec.load %p[32] : vector<32xi8>\n"
                       "%a = vec.load %q[0] : vector<8xi32>\n%b = vec.bitcast %a : vector<8xi32> to vector<32xi8>\n"
                       "%w = vec.and %u, %v : vector<32xi8>\n"
                       "%r = vec.dot2 %w, %b {umax = 15 : i64} : vector<32xi8> -> vector<16xi16>\n"
                       "vec.store %r, %o[0] : vector<16xi16>\n"),
              ContainsRegex("vpmaddubsw\tymm., ymm., ymmword ptr"));
}

TEST(X86Fma, TheAccumulatorStaysInItsRegister) {
  const std::string text = assembly("%z = vec.constant dense<0.0> : vector<8xf32>\n"
                                    "%r = vec.loop %i = %c0 to %n step 1 iter_args(%a = %z) -> (vector<8xf32>) {\n"
                                    "  %x = vec.ptr_offset %p, %i * 32\n  %y = vec.ptr_offset %q, %i * 32\n"
                                    "  %v = vec.load %x[0] : vector<8xf32>\n  %w = vec.load %y[0] : vector<8xf32>\n"
                                    "  %s = vec.fma %v, %w, %a : vector<8xf32>\n  vec.yield %s : vector<8xf32>\n}\n"
                                    "vec.store %r, %o[0] : vector<8xf32>\n");
  EXPECT_THAT(text, ContainsRegex("vfmadd231ps\tymm0, ymm1, ymmword ptr"));
  EXPECT_EQ(count(text, "vmovaps"), 0u) << text;
  EXPECT_THAT(text, HasSubstr("vpxor\txmm0"));
}

TEST(X86Fma, AFactorThatDiesIsOverwritten) {
  // c lives on, so a or b gives its register.
  const std::string text =
      assembly("%a = vec.load %p[0] : vector<8xf32>\n%b = vec.load_splat %p[32] : vector<8xf32>\n"
               "%c = vec.load_splat %q[0] : vector<8xf32>\n%r = vec.fma %a, %b, %c : vector<8xf32>\n"
               "%s = vec.sub %r, %c : vector<8xf32>\nvec.store %s, %o[0] : vector<8xf32>\n");
  EXPECT_THAT(text, ContainsRegex("vfmadd(132|213)ps"));
  EXPECT_EQ(count(text, "vmovaps"), 0u) << text;
}

TEST(X86Addressing, AwkwardStridesBumpAPointer) {
  const std::string text = assembly("vec.loop %i = %c0 to %n step 1 {\n  %x = vec.ptr_offset %p, %i * 144\n"
                                    "  %v = vec.load %x[16] : vector<8xf32>\n  %y = vec.ptr_offset %o, %i * 4\n"
                                    "  vec.store %v, %y[8] : vector<8xf32>\n}\n");
  EXPECT_THAT(text, AllOf(Not(HasSubstr("imul")), ContainsRegex("add\tr.*, 0x90"),
                          ContainsRegex("\\[r.* \\+ 4\\*r.* \\+ 0x8\\]")));
}

TEST(X86Addressing, FarOffsetsStillReachTheirBytes) {
  const std::string text = assembly(
      "%x = vec.ptr_add %p, 8589934592\n%v = vec.load %x[0] : vector<8xf32>\nvec.store %v, %o[0] : vector<8xf32>\n");
  EXPECT_THAT(text, HasSubstr("movabs"));
}

/// `live` vectors are loaded, then added up pairwise in the same order: all of them are live at once.
std::string pressure(int live) {
  std::string body;
  for (int i = 0; i < live; ++i)
    body += "%v" + std::to_string(i) + " = vec.load_splat %p[" + std::to_string(4 * i) + "] : vector<8xf32>\n";
  body += "%s0 = vec.mul %v0, %v0 : vector<8xf32>\n";
  for (int i = 1; i < live; ++i)
    body += "%s" + std::to_string(i) + " = vec.sub %s" + std::to_string(i - 1) + ", %v" + std::to_string(i) +
            " : vector<8xf32>\n";
  return body + "vec.store %s" + std::to_string(live - 1) + ", %o[0] : vector<8xf32>\n";
}

TEST(X86Registers, SixteenFitAndMoreAreSpilledCorrectly) {
  EXPECT_EQ(compile(pressure(16)).spills, 0u);
  EXPECT_EQ(compile(pressure(16)).frame_bytes, 0u);
  EXPECT_GT(compile(pressure(17)).spills, 0u);
  EXPECT_EQ(compile(pressure(32), "avx512vnni").spills, 0u);
  testing::GuardedBuffer in0(4 * 40), in1(1);
  for (size_t i = 0; i < 40; ++i)
    reinterpret_cast<float*>(in0.data())[i] = static_cast<float>(i) * 1.25f;
  for (int live : {16, 17, 18, 24, 40}) {
    auto parsed = testing::parse_kernel("vec.kernel @k(%args: !vec.ptr) {\n  %p = vec.load_ptr %args[0]\n"
                                        "  %o = vec.load_ptr %args[16]\n" +
                                        pressure(live) + "}\n");
    EXPECT_EQ(testing::compare_with_interpreter(parsed.kernel, "x86-64-v3", in0, in1, 32, 0, 0), "") << live;
  }
}

TEST(X86Registers, SumsBuiltSideBySideAreReordered) {
  // Twenty products, then twenty sums: in that order more is live than registers hold, product by product it is not.
  std::string body, sums;
  for (int i = 0; i < 20; ++i) {
    const std::string n = std::to_string(i), before = i ? "%s" + std::to_string(i - 1) : "%z";
    body += "%v" + n + " = vec.load_splat %p[" + std::to_string(4 * i) + "] : vector<8xf32>\n%m" + n + " = vec.mul %v" +
            n + ", %v" + n + " : vector<8xf32>\n";
    sums += "%s" + n + " = vec.sub " + before + ", %m" + n + " : vector<8xf32>\n";
  }
  const std::string text =
      "%z = vec.load_splat %q[0] : vector<8xf32>\n" + body + sums + "vec.store %s19, %o[0] : vector<8xf32>\n";
  EXPECT_EQ(compile(text).spills, 0u);
  auto parsed = testing::parse_kernel("vec.kernel @k(%args: !vec.ptr) {\n%p = vec.load_ptr %args[0]\n"
                                      "%q = vec.load_ptr %args[8]\n%o = vec.load_ptr %args[16]\n" +
                                      text + "}\n");
  testing::GuardedBuffer in0(80), in1(4);
  for (size_t i = 0; i < 20; ++i)
    reinterpret_cast<float*>(in0.data())[i] = static_cast<float>(i) * 0.375f;
  EXPECT_EQ(testing::compare_with_interpreter(parsed.kernel, "x86-64-v3", in0, in1, 32, 0, 0), "");
}

TEST(X86Registers, ConstantsGiveWayFirst) {
  // Fifteen accumulators and two constants: one constant is read from the pool, nothing goes to the stack.
  std::string inits, types, body, yields;
  for (int i = 0; i < 15; ++i) {
    const std::string n = std::to_string(i);
    inits += (i ? ", %a" : "%a") + n + " = %z";
    types += i ? ", vector<8xf32>" : "vector<8xf32>";
    body += "  %t" + n + " = vec.mul %a" + n + ", %c : vector<8xf32>\n  %u" + n + " = vec.add %t" + n +
            ", %d : vector<8xf32>\n";
    yields += (i ? ", %u" : "%u") + n;
  }
  const auto code =
      compile("%z = vec.constant dense<0.0> : vector<8xf32>\n%c = vec.constant dense<3.0> : vector<8xf32>\n"
              "%d = vec.constant dense<5.0> : vector<8xf32>\n"
              "%r:15 = vec.loop %i = %c0 to %n step 1 iter_args(" +
              inits + ") -> (" + types + ") {\n" + body + "  vec.yield " + yields + " : " + types +
              "\n}\nvec.store %r#3, %o[0] : vector<8xf32>\n");
  EXPECT_EQ(code.spills, 0u);
  EXPECT_THAT(print_asm(code), ContainsRegex("v(mul|add)ps\tymm.*, ymm.*, ymmword ptr \\[rip"));
}

TEST(X86Loops, ExchangedValuesNeedNoThirdRegister) {
  auto parsed = testing::parse_kernel(R"(
    vec.kernel @swap(%args: !vec.ptr) {
      %p = vec.load_ptr %args[0]
      %o = vec.load_ptr %args[16]
      %n = vec.load_index %args[24]
      %c0 = vec.index 0
      %a = vec.load %p[0] : vector<8xi32>
      %b = vec.load %p[32] : vector<8xi32>
      %r:3 = vec.loop %i = %c0 to %n step 1 iter_args(%x = %a, %y = %b, %m = %n) -> (vector<8xi32>, vector<8xi32>, index) {
        vec.yield %y, %x, %i : vector<8xi32>, vector<8xi32>, index
      }
      vec.store %r#0, %o[0] : vector<8xi32>
      %q = vec.ptr_offset %o, %r#2 * 3
      vec.store %r#1, %q[32] : vector<8xi32>
    })");
  ASSERT_TRUE(parsed.kernel);
  testing::GuardedBuffer in0(64), in1(1);
  for (size_t i = 0; i < 64; ++i)
    in0.data()[i] = static_cast<uint8_t>(i);
  for (uint64_t trips : {0, 1, 2, 5}) // none at all, odd and even
    EXPECT_EQ(testing::compare_with_interpreter(parsed.kernel, "x86-64-v3", in0, in1, 128, trips, 0), "") << trips;
}

TEST(X86Loops, BoundsMayBeNegative) {
  // From -3, a constant, and from the (negative) stride: the first address lies before the pointer.
  auto parsed = testing::parse_kernel(R"(
    vec.kernel @negative(%args: !vec.ptr) {
      %p = vec.load_ptr %args[0]
      %o = vec.load_ptr %args[16]
      %n = vec.load_index %args[24]
      %m = vec.load_index %args[32]
      %lo = vec.index -3
      %hi = vec.index -1
      %b = vec.ptr_add %o, 128
      %v = vec.load %p[0] : vector<4xi32>
      vec.loop %i = %lo to %n step 1 {
        %q = vec.ptr_offset %b, %i * 24
        vec.store %v, %q[0] : vector<4xi32>
      }
      vec.loop %i = %m to %hi step 1 {
        %q = vec.ptr_offset %b, %i * 20
        %r = vec.ptr_offset %b, %i * 8
        %w = vec.load %r[0] : vector<4xi32>
        vec.store %w, %q[4] : vector<4xi32>
      }
    })");
  ASSERT_TRUE(parsed.kernel);
  testing::GuardedBuffer in0(16), in1(1);
  for (size_t i = 0; i < 16; ++i)
    in0.data()[i] = static_cast<uint8_t>(i + 1);
  for (int64_t count : {-5, -3, -2, 0, 2})
    for (int64_t stride : {-4, -1, 3})
      EXPECT_EQ(testing::compare_with_interpreter(parsed.kernel, "x86-64-v3", in0, in1, 256,
                                                  static_cast<uint64_t>(count), static_cast<uint64_t>(stride)),
                "")
          << count << " " << stride;
}

TEST(X86Refusals, NameTheOpAndTheTargetsWidth) {
  auto parsed =
      testing::parse_kernel("vec.kernel @wide(%args: !vec.ptr) {\n%p = vec.load_ptr %args[0]\n"
                            "%v = vec.load %p[0] : vector<16xf32>\nvec.store %v, %p[0] : vector<16xf32>\n}\n");
  const auto code = codegen::emit_x86(parsed.kernel, *codegen::x86_target("x86-64-v3"));
  ASSERT_FALSE(code.ok());
  EXPECT_EQ(code.status().message(), "kernel wide: vec.load: has a vector wider than the target's 256 bits");
}

TEST(X86Features, TargetsAndNames) {
  EXPECT_TRUE(codegen::x86_target("avx512vnni")->avx512_vnni);
  EXPECT_TRUE(codegen::x86_target("avxvnni")->avx_vnni);
  EXPECT_FALSE(codegen::x86_target("x86-64-v3")->avx_vnni);
  EXPECT_THAT(codegen::x86_target("pentium").status().message(), HasSubstr("'pentium'"));
  const std::vector<std::string> unknown{"avx2", "mmx"}, too_few{"avx2"};
  EXPECT_THAT(codegen::x86_features(unknown).status().message(), HasSubstr("'mmx'"));
  EXPECT_THAT(codegen::x86_features(too_few).status().message(), HasSubstr("x86-64-v3"));
}

TEST(X86Determinism, SameKernelSameBytes) {
  EXPECT_EQ(compile(pressure(24)).bytes, compile(pressure(24)).bytes);
  EXPECT_EQ(compile(pressure(24)).bytes.size() % 64, 0u);
}

} // namespace
} // namespace cortiq
