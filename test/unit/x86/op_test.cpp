// Every op by itself, at every width, on each target: machine code against the interpreter, with buffers that end at an
// unreadable page.

#include "test/unit/x86/kernel_harness.h"

#include <cstring>
#include <gtest/gtest.h>
#include <random>

namespace cortiq {
namespace {

using testing::GuardedBuffer;

std::string vector_type(unsigned bits, const std::string& lane) {
  const unsigned lane_bits = lane == "i8" ? 8 : lane == "i32" || lane == "f32" ? 32 : 16;
  return "vector<" + std::to_string(bits / lane_bits) + "x" + lane + ">";
}

struct OpRow {
  const char* name;
  const char* op;         ///< the op on %a, %b, %c
  const char* operand[3]; ///< lane types of %a, %b, %c
  unsigned narrower;      ///< operands have 1/narrower of the result's bits
  const char* result;
  const char* types; ///< after the colon: A and R stand for operand and result type
};

const OpRow kRows[] = {
    {"and_i8", "vec.and %a, %b", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"or_i16", "vec.or %a, %b", {"i16", "i16", "i16"}, 1, "i16", "R"},
    {"xor_i32", "vec.xor %a, %b", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"and_not_i8", "vec.and_not %a, %b", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"shl_i16", "vec.shl %a, 5", {"i16", "i16", "i16"}, 1, "i16", "R"},
    {"shl_i32", "vec.shl %a, 31", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"shr_u_i16", "vec.shr_u %a, 4", {"i16", "i16", "i16"}, 1, "i16", "R"},
    {"shr_u_i32", "vec.shr_u %a, 1", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"shr_s_i16", "vec.shr_s %a, 15", {"i16", "i16", "i16"}, 1, "i16", "R"},
    {"shr_s_i32", "vec.shr_s %a, 7", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"shr_v", "vec.shr_v %a, %b", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"select_bits_f32", "vec.select_bits %a, 2147483652, %b, %c", {"i32", "i32", "i32"}, 1, "i32", "A, R"},
    {"add_i8", "vec.add %a, %b", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"add_i16", "vec.add %a, %b", {"i16", "i16", "i16"}, 1, "i16", "R"},
    {"add_i32", "vec.add %a, %b", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"add_f32", "vec.add %a, %b", {"f32", "f32", "f32"}, 1, "f32", "R"},
    {"sub_i8", "vec.sub %a, %b", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"sub_i16", "vec.sub %a, %b", {"i16", "i16", "i16"}, 1, "i16", "R"},
    {"sub_i32", "vec.sub %a, %b", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"sub_f32", "vec.sub %a, %b", {"f32", "f32", "f32"}, 1, "f32", "R"},
    {"mul_i16", "vec.mul %a, %b", {"i16", "i16", "i16"}, 1, "i16", "R"},
    {"mul_i32", "vec.mul %a, %b", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"mul_f32", "vec.mul %a, %b", {"f32", "f32", "f32"}, 1, "f32", "R"},
    {"abs_i8", "vec.abs %a", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"abs_i16", "vec.abs %a", {"i16", "i16", "i16"}, 1, "i16", "R"},
    {"abs_i32", "vec.abs %a", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"sign_i8", "vec.sign %a, %b", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"lookup16", "vec.lookup16 %a, %b", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"lookup64", "vec.lookup64 %a, %b", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"lookup128", "vec.lookup128 %a, %b, %c", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"select_negative", "vec.select_negative %a, %b, %c", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"blend_bits", "vec.blend_bits %a, %b, %c", {"i32", "i32", "i32"}, 1, "i32", "R"},
    {"bit_fields", "vec.bit_fields %a, %b", {"i8", "i8", "i8"}, 1, "i8", "R"},
    {"pair_add", "vec.pair_add %a", {"i16", "i16", "i16"}, 1, "i32", "A -> R"},
    {"dot2", "vec.dot2 %u, %b {umax = 15 : i64}", {"i8", "i8", "i8"}, 1, "i16", "A -> R"},
    {"dot4", "vec.dot4 %z, %a, %b {umax = 255 : i64}", {"i8", "i8", "i8"}, 1, "i32", "R, A"},
    {"dot4_short", "vec.dot4 %z, %u, %b {umax = 15 : i64}", {"i8", "i8", "i8"}, 1, "i32", "R, A"},
    {"mul_pairs", "vec.mul_pairs %a, %b", {"i16", "i16", "i16"}, 1, "i32", "A -> R"},
    {"i32_to_f32", "vec.convert %a", {"i32", "i32", "i32"}, 1, "f32", "A to R"},
    {"f32_to_i32", "vec.convert %a", {"f32", "f32", "f32"}, 1, "i32", "A to R"},
    {"f16_to_f32", "vec.convert %a", {"f16", "f16", "f16"}, 2, "f32", "A to R"},
    {"bf16_to_f32", "vec.convert %a", {"bf16", "bf16", "bf16"}, 2, "f32", "A to R"},
    {"i8_to_i16", "vec.convert %a", {"i8", "i8", "i8"}, 2, "i16", "A to R"},
    {"u8_to_i16", "vec.convert %a unsigned", {"i8", "i8", "i8"}, 2, "i16", "A to R"},
    {"i16_to_i32", "vec.convert %a", {"i16", "i16", "i16"}, 2, "i32", "A to R"},
    {"u16_to_i32", "vec.convert %a unsigned", {"i16", "i16", "i16"}, 2, "i32", "A to R"},
    {"i8_to_i32", "vec.convert %a", {"i8", "i8", "i8"}, 4, "i32", "A to R"},
    {"u8_to_i32", "vec.convert %a unsigned", {"i8", "i8", "i8"}, 4, "i32", "A to R"},
    {"fma", "vec.fma %a, %b, %c", {"f32", "f32", "f32"}, 1, "f32", "R"},
    {"fmin", "vec.fmin %a, %b", {"f32", "f32", "f32"}, 1, "f32", "R"},
    {"fmax", "vec.fmax %a, %b", {"f32", "f32", "f32"}, 1, "f32", "R"},
    {"div", "vec.div %a, %b", {"f32", "f32", "f32"}, 1, "f32", "R"},
    {"reduce_f32", "vec.reduce_add %a", {"f32", "f32", "f32"}, 1, "f32", "R"},
    {"reduce_i32", "vec.reduce_add %a", {"i32", "i32", "i32"}, 1, "i32", "R"},
};

const char* const kTargets[] = {"x86-64-v3", "avxvnni", "avx512vnni", "avx512vbmi"};

bool has_512_bits(const std::string& target) {
  return target.starts_with("avx512");
}

/// Whether the target has the op at this width.
bool has_op(const std::string& op, const std::string& target, unsigned bits) {
  if (bits == 512 && !has_512_bits(target))
    return false;
  if (op == "lookup64" || op == "lookup128")
    return bits == 512 && target == "avx512vbmi";
  if (op == "bit_fields")
    return target == "avx512vbmi";
  if (op == "blend_bits")
    return has_512_bits(target);
  return bits >= 128 || op != "lookup16";
}

std::string head(const std::string& name) {
  return "vec.kernel @" + name +
         "(%args: !vec.ptr) {\n  %p = vec.load_ptr %args[0]\n  %q = vec.load_ptr %args[8]\n  %o = vec.load_ptr "
         "%args[16]\n";
}

/// Random lanes of the type, floats within reason.
void fill(std::mt19937& random, const std::string& lane, std::span<uint8_t> bytes) {
  if (lane == "f32") {
    for (size_t at = 0; at + 4 <= bytes.size(); at += 4) {
      const float value = (static_cast<float>(random() % 200000) - 100000) / 128;
      std::memcpy(bytes.data() + at, &value, 4);
    }
    return;
  }
  for (size_t at = 0; at < bytes.size(); ++at)
    bytes[at] = static_cast<uint8_t>(random());
  if (lane == "f16" || lane == "bf16")
    for (size_t at = 1; at < bytes.size(); at += 2)
      bytes[at] &= 0xBB; // away from infinity and NaN
}

TEST(X86Ops, EveryOpAtEveryWidth) {
  std::mt19937 random(1);
  int ran = 0;
  for (const char* target : kTargets) {
    if (const std::string missing = testing::missing_for(target); !missing.empty()) {
      std::printf("not run on %s: this machine lacks %s\n", target, missing.c_str());
      continue;
    }
    for (const OpRow& row : kRows)
      for (unsigned bits : {64u, 128u, 256u, 512u}) {
        if (bits / row.narrower < 64 || !has_op(row.name, target, bits))
          continue;
        const unsigned in_bits = bits / row.narrower, in_bytes = in_bits / 8;
        const std::string in = vector_type(in_bits, row.operand[0]), out = vector_type(bits, row.result);
        std::string types;
        for (const char* c = row.types; *c; ++c)
          types += *c == 'A' ? in : *c == 'R' ? out : std::string(1, *c);
        std::string text = head(row.name);
        // %a is followed by nothing readable; %c comes from behind %b.
        text += "  %a = vec.load %p[0] : " + in + "\n  %b = vec.load %q[0] : " + in + "\n  %c = vec.load %q[" +
                std::to_string(in_bytes) + "] : " + in + "\n";
        if (std::string(row.operand[0]) == "i8" && row.narrower == 1)
          text += "  %mask = vec.constant dense<15> : " + in + "\n  %u = vec.and %a, %mask : " + in +
                  "\n  %z = vec.constant dense<7> : " + vector_type(bits, "i32") + "\n";
        text += "  %r = " + std::string(row.op) + " : " + types + "\n  vec.store %r, %o[0] : " + out + "\n}\n";
        auto parsed = testing::parse_kernel(text);
        ASSERT_TRUE(parsed.kernel) << text;
        GuardedBuffer in0(in_bytes), in1(2 * in_bytes);
        for (int round = 0; round < 20; ++round) {
          fill(random, row.operand[0], in0.bytes());
          fill(random, row.operand[0], in1.bytes());
          if (std::string(row.name) == "shr_v") // half of the amounts within the lane's 32 bits
            for (size_t at = 0; at < in1.size(); at += 4) {
              const uint32_t amount = random() % 64;
              std::memcpy(in1.data() + at, &amount, 4);
            }
          ASSERT_EQ(testing::compare_with_interpreter(parsed.kernel, target, in0, in1, bits / 8, 0, 0), "")
              << row.name << " at " << bits << " bits on " << target;
          ++ran;
        }
      }
  }
  EXPECT_GT(ran, 1000);
}

TEST(X86Ops, TailsTouchNothingBeyondTheirLanes) {
  std::mt19937 random(2);
  for (const char* target : kTargets) {
    if (!testing::missing_for(target).empty())
      continue;
    for (const std::string lane : {"i8", "i16", "i32", "f32", "f16"})
      for (unsigned bits : {64u, 128u, 256u, 512u}) {
        if (bits == 512 && !has_512_bits(target))
          continue;
        const unsigned lane_bytes = lane == "i8" ? 1 : lane == "i32" || lane == "f32" ? 4 : 2;
        for (unsigned lanes = 1; lanes <= bits / 8 / lane_bytes; ++lanes) {
          const unsigned bytes = lanes * lane_bytes;
          const std::string type = vector_type(bits, lane), only = " {lanes = " + std::to_string(lanes) + " : i64} : ";
          // The whole register shows that the lanes behind are zero, the second store ends at the buffer's end.
          auto parsed = testing::parse_kernel(head("tail") + "  %v = vec.load %p[0]" + only + type +
                                              "\n  vec.store %v, %o[0] : " + type + "\n  vec.store %v, %o[" +
                                              std::to_string(bits / 8) + "]" + only + type + "\n}\n");
          ASSERT_TRUE(parsed.kernel);
          GuardedBuffer in0(bytes), in1(1);
          fill(random, lane, in0.bytes());
          ASSERT_EQ(testing::compare_with_interpreter(parsed.kernel, target, in0, in1, bits / 8 + bytes, 0, 0), "")
              << lanes << " lanes of " << type << " on " << target;
        }
      }
  }
}

TEST(X86Ops, SplatsAndGathersReadTheirLanesOnly) {
  std::mt19937 random(3);
  for (const char* target : kTargets) {
    if (!testing::missing_for(target).empty())
      continue;
    for (unsigned bits : {128u, 256u, 512u}) {
      if (bits == 512 && !has_512_bits(target))
        continue;
      for (const std::string lane : {"i8", "i16", "i32", "f32", "f16", "bf16"}) {
        auto parsed = testing::parse_kernel(head("splat") + "  %v = vec.load_splat %p[0] : " + vector_type(bits, lane) +
                                            "\n  vec.store %v, %o[0] : " + vector_type(bits, lane) + "\n}\n");
        ASSERT_TRUE(parsed.kernel);
        GuardedBuffer in0(lane == "i8" ? 1 : lane == "i32" || lane == "f32" ? 4 : 2), in1(1);
        fill(random, lane, in0.bytes());
        ASSERT_EQ(testing::compare_with_interpreter(parsed.kernel, target, in0, in1, bits / 8, 0, 0), "")
            << lane << " at " << bits << " on " << target;
      }
      if (bits > 128) {
        auto parsed =
            testing::parse_kernel(head("repeated") + "  %v = vec.load_repeated %p[0] : " + vector_type(bits, "i8") +
                                  "\n  vec.store %v, %o[0] : " + vector_type(bits, "i8") + "\n}\n");
        ASSERT_TRUE(parsed.kernel);
        GuardedBuffer in0(16), in1(1);
        fill(random, "i8", in0.bytes());
        ASSERT_EQ(testing::compare_with_interpreter(parsed.kernel, target, in0, in1, bits / 8, 0, 0), "")
            << "16 bytes repeated at " << bits << " on " << target;
      }
      const std::string ints = vector_type(bits, "i32");
      auto parsed = testing::parse_kernel(head("gather") + "  %i = vec.load %q[0] : " + ints +
                                          "\n  %v = vec.gather %p[8], %i * 4 : " + ints + " -> " + ints +
                                          "\n  vec.store %v, %o[0] : " + ints + "\n}\n");
      ASSERT_TRUE(parsed.kernel);
      GuardedBuffer in0(4 * 64), in1(bits / 8);
      fill(random, "i32", in0.bytes());
      for (size_t at = 0; at < in1.size(); at += 4) {
        const int32_t index = static_cast<int32_t>(random() % 64) - 2; // -2 is the buffer's first lane, 61 its last
        std::memcpy(in1.data() + at, &index, 4);
      }
      ASSERT_EQ(testing::compare_with_interpreter(parsed.kernel, target, in0, in1, bits / 8, 0, 0), "")
          << "gather at " << bits << " on " << target;
    }
  }
}

TEST(X86Ops, TablesStandBesideTheCode) {
  // One of three bytes, one of a vector constant's bytes, and one of two pages, whose last entry is read.
  std::string pages;
  for (int i = 0; i < 2048; ++i)
    pages += (i ? ", " : "") + std::to_string(i * 1001);
  std::mt19937 random(4);
  for (const char* target : kTargets) {
    if (!testing::missing_for(target).empty())
      continue;
    auto parsed = testing::parse_kernel(
        head("tables") +
        "  %i = vec.load %p[0] : vector<8xi32>\n  %small = vec.table dense<[7, 8, 9]> : tensor<3xi8>\n" +
        "  %same = vec.table dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>\n"
        "  %again = vec.table dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>\n"
        "  %large = vec.table dense<[" +
        pages +
        "]> : tensor<2048xi32>\n"
        "  %c = vec.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : vector<8xi32>\n"
        "  %a = vec.gather %large[0], %i * 4 : vector<8xi32> -> vector<8xi32>\n"
        "  %b = vec.load %same[0] : vector<8xi32>\n  %d = vec.load %again[4] {lanes = 7 : i64} : vector<8xi32>\n"
        "  %e = vec.load %small[0] {lanes = 3 : i64} : vector<8xi8>\n  %f = vec.add %a, %c : vector<8xi32>\n"
        "  vec.store %f, %o[0] : vector<8xi32>\n  vec.store %b, %o[32] : vector<8xi32>\n"
        "  vec.store %d, %o[64] : vector<8xi32>\n  vec.store %e, %o[96] : vector<8xi8>\n}\n");
    ASSERT_TRUE(parsed.kernel);
    GuardedBuffer in0(32), in1(1);
    for (size_t at = 0; at < in0.size(); at += 4) {
      const int32_t index = at == 0 ? 2047 : static_cast<int32_t>(random() % 2048);
      std::memcpy(in0.data() + at, &index, 4);
    }
    ASSERT_EQ(testing::compare_with_interpreter(parsed.kernel, target, in0, in1, 104, 0, 0), "") << target;
    auto code = codegen::emit_x86(parsed.kernel, *codegen::x86_target(target));
    ASSERT_TRUE(code.ok());
    // The constant and the tables equal to it share their 32 bytes.
    EXPECT_EQ(code->bytes.size(), (code->code_bytes + 63) / 64 * 64 + 8192 + 64 + 64) << target;
  }
}

TEST(X86Ops, AnIndexIsReadFromMemory) {
  for (const char* target : kTargets) {
    if (!testing::missing_for(target).empty())
      continue;
    auto parsed =
        testing::parse_kernel(head("read_index") + "  %n = vec.read_index %p[4]\n  %lo = vec.index 0\n"
                                                   "  %one = vec.constant dense<1> : vector<4xi32>\n"
                                                   "  %zero = vec.constant dense<0> : vector<4xi32>\n"
                                                   "  %sum = vec.loop %i = %lo to %n step 1 iter_args(%a = %zero) -> "
                                                   "(vector<4xi32>) {\n    %next = vec.add %a, %one : vector<4xi32>\n"
                                                   "    vec.yield %next : vector<4xi32>\n  }\n"
                                                   "  vec.store %sum, %o[0] : vector<4xi32>\n}\n");
    ASSERT_TRUE(parsed.kernel);
    GuardedBuffer in0(8), in1(1);
    for (const uint32_t count : {0u, 1u, 1000u, 70000u}) {
      const uint32_t words[2] = {~0u, count};
      std::memcpy(in0.data(), words, 8);
      ASSERT_EQ(testing::compare_with_interpreter(parsed.kernel, target, in0, in1, 16, 0, 0), "") << target;
    }
  }
}

} // namespace
} // namespace cortiq
