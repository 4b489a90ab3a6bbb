// What layout.h promises to kernels: the place of every field, and what its bits mean. Weights are computed here from
// fields alone, by the address formula and the field comments of that header, and held against the reference decode.

#include <cmath>

#include "formats/codec/fp4.h"
#include "formats/codec/half.h"
#include "formats/codec/iq4_levels.h"
#include "formats/codec/iq_decode.h"
#include "formats/codec/iq_grids.h"
#include "formats/codec/k_quant_scales.h"
#include "formats/codec/stq1_0_pattern.h"
#include "formats/codec/ternary.h"
#include "test/unit/layout/tensors.h"

namespace cortiq::formats {
namespace {

class FieldReader {
public:
  FieldReader(const R16Format& format, const std::vector<uint8_t>& bytes, uint64_t rows, uint64_t row)
      : format_(format), bytes_(bytes), group_(format.tensor_bytes + row / 16 * 16 * format.row_bytes()),
        lanes_(std::min<uint64_t>(16, rows - row / 16 * 16)), lane_(row % 16) {}

  uint32_t header(std::string_view name, uint64_t unit) const {
    const LayoutField& f = format_.header_field(name);
    EXPECT_LT(unit, f.count);
    return read(group_ + lanes_ * (f.offset + unit * f.unit) + lane_ * f.unit, f.unit);
  }
  uint32_t field(std::string_view name, uint64_t block, uint64_t unit) const {
    const LayoutField& f = format_.field(name);
    EXPECT_LT(unit, f.count);
    return read(group_ + lanes_ * (format_.header_bytes + block * format_.block_bytes + f.offset + unit * f.unit) +
                    lane_ * f.unit,
                f.unit);
  }
  float half(std::string_view name, uint64_t block) const {
    return half_to_float(static_cast<uint16_t>(field(name, block, 0)));
  }
  float column_scale(uint64_t col) const { return half_to_float(static_cast<uint16_t>(read(2 * col, 2))); }

  /// Nibble of weight i of a block whose dword u has weights 4u.. in its low halves and 16 + 4u.. in its high ones.
  int nibble(uint64_t block, uint64_t i) const {
    return static_cast<int>(field("qs", block, i % 16 / 4) >> (8 * (i % 4) + i / 16 * 4) & 15);
  }
  /// Bit 8j + s of "qh" belongs to weight 4s + j.
  int fifth_bit(uint64_t block, uint64_t i) const {
    return static_cast<int>(field("qh", block, 0) >> (8 * (i % 4) + i / 4) & 1);
  }
  /// Code of weight `i` of a field of one-bit codes in record order, and of one of two-bit codes.
  int bit(std::string_view name, uint64_t block, uint64_t i) const {
    return static_cast<int>(field(name, block, i / 32) >> (8 * (i % 4) + i % 32 / 4) & 1);
  }
  int pair(std::string_view name, uint64_t block, uint64_t i) const {
    return static_cast<int>(field(name, block, i / 16) >> (8 * (i % 4) + i % 16 / 4 * 2) & 3);
  }
  float word(std::string_view name, uint64_t block) const { return std::bit_cast<float>(field(name, block, 0)); }
  /// The f32 in front of the tensor part.
  float tensor_scale() const { return std::bit_cast<float>(read(0, 4)); }
  /// Base-3 digit of weight `i`: 20 a dword of "qs", then four a byte of "qr".
  int digit(uint64_t block, uint64_t i) const {
    const uint64_t dwords = format_.field("qs").count;
    if (i < 20 * dwords)
      return ternary_digit(byte("qs", block, i / 20 * 4 + i % 4), static_cast<int>(i % 20 / 4));
    const uint64_t rest = i - 20 * dwords;
    return ternary_digit(static_cast<uint8_t>(field("qr", block, rest / 4)), static_cast<int>(rest % 4));
  }
  /// Byte `i` of a field of dwords.
  uint8_t byte(std::string_view name, uint64_t block, uint64_t i) const {
    return static_cast<uint8_t>(field(name, block, i / 4) >> (8 * (i % 4)));
  }

private:
  uint32_t read(uint64_t at, uint32_t unit) const {
    EXPECT_LE(at + unit, bytes_.size());
    uint32_t value = 0;
    for (uint32_t i = 0; i < unit && at + i < bytes_.size(); ++i)
      value |= static_cast<uint32_t>(bytes_[at + i]) << (8 * i);
    return value;
  }

  const R16Format& format_;
  const std::vector<uint8_t>& bytes_;
  uint64_t group_, lanes_, lane_;
};

using WeightOf = float (*)(const FieldReader&, uint64_t block, uint64_t i);

float signed_code(uint32_t byte) {
  return static_cast<float>(static_cast<int8_t>(byte));
}

float k_quant(const FieldReader& r, uint64_t block, uint64_t i, int code) {
  uint8_t scales[12];
  for (uint64_t k = 0; k < 12; ++k)
    scales[k] = r.byte("scales", block, k);
  const KQuantScale sub = k_quant_scale(scales, static_cast<int>(i / 32));
  return r.half("d", block) * static_cast<float>(sub.scale) * static_cast<float>(code) -
         r.half("dmin", block) * static_cast<float>(sub.minimum);
}

float iq4_nl(const FieldReader& r, uint64_t block, uint64_t i) {
  return static_cast<float>(kIQ4Levels[r.nibble(block, i)]) * r.half("d", block);
}

float q4tp(const FieldReader& r, uint64_t block, uint64_t i) {
  const uint32_t code = r.header("codes", block / 6) >> (5 * (block % 6)) & 31;
  float rung = std::bit_cast<float>(r.header("lo", 0));
  for (uint32_t c = 0; c < code; ++c)
    rung *= std::bit_cast<float>(r.header("step", 0));
  return static_cast<float>(r.nibble(block, i) - 8) * rung;
}

float q4_nibble(const FieldReader& r, uint64_t b, uint64_t i) {
  return static_cast<float>(r.nibble(b, i) - 8) * r.half("d", b);
}

int k_nibble(const FieldReader& r, uint64_t block, uint64_t i) {
  return r.byte("qs", block, 32 * (i / 64) + i % 32) >> (i / 32 % 2 * 4) & 15;
}

float q6_k(const FieldReader& r, uint64_t block, uint64_t i) {
  const uint64_t half = i / 128, j = i % 128 / 32, l = i % 32;
  const int low = r.byte("ql", block, 64 * half + 32 * (j % 2) + l) >> (j / 2 * 4) & 15;
  const int high = r.byte("qh", block, 32 * half + l) >> (2 * j) & 3;
  return r.half("d", block) * signed_code(r.byte("scales", block, i / 16)) * static_cast<float>((low | high << 4) - 32);
}

float sign_of(const FieldReader& r, uint64_t b, uint64_t i) {
  const float d = r.half("d", b);
  return r.bit("qs", b, i) ? d : -d;
}

float ternary_pair(const FieldReader& r, uint64_t b, uint64_t i) {
  return static_cast<float>(r.pair("qs", b, i) - 1) * r.half("d", b);
}

float ternary_of(const FieldReader& r, uint64_t b, uint64_t i) {
  return static_cast<float>(r.digit(b, i) - 1) * r.half("d", b);
}

float q1t(const FieldReader& r, uint64_t b, uint64_t i) {
  const float d = r.half("d", b);
  const float levels[] = {-d, 0.0f, d}; // a zero level is zero under any scale
  return levels[r.digit(b, i)];
}

float q2_k(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint8_t sub = r.byte("scales", b, i / 16);
  return r.half("d", b) * static_cast<float>(sub & 15) * static_cast<float>(r.pair("qs", b, i)) -
         r.half("dmin", b) * static_cast<float>(sub >> 4);
}

float q3_k(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint64_t t = i / 64, byte = i / 16 % 4; // the scale is 4t + byte
  const uint32_t low = r.field("scales", b, t % 2) >> (4 * (t / 2)) & 0x0f0f0f0f;
  const uint32_t high = r.field("scales", b, 2) >> (2 * t) & 0x03030303;
  const int scale = static_cast<int>((low >> (8 * byte) & 15) | (high >> (8 * byte) & 3) << 4);
  const int code = r.pair("qs", b, i) - (r.bit("qh", b, i) ? 0 : 4);
  return r.half("d", b) * static_cast<float>(scale - 32) * static_cast<float>(code);
}

template <int kTwiceZero>
float q2tp(const FieldReader& r, uint64_t block, uint64_t i) {
  const uint32_t code = r.header("codes", block / 6) >> (5 * (block % 6)) & 31;
  float rung = code == 0 ? 0.0f : std::bit_cast<float>(r.header("lo", 0));
  for (uint32_t c = 1; c < code; ++c)
    rung *= std::bit_cast<float>(r.header("step", 0));
  return (static_cast<float>(r.pair("qs", block, i)) - 0.5f * kTwiceZero) * rung;
}

float fv5(const FieldReader& r, uint64_t b, uint64_t i) {
  return static_cast<float>(r.bit("plus", b, i) - r.bit("minus", b, i)) *
         (r.bit("select", b, i) ? r.word("high", b) : r.word("low", b));
}

float stq1_0(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint64_t g = i / 64 * 16 + i % 16;
  const uint32_t slot = r.field("slots", b, g / 8) >> (8 * (g % 4) + g % 8 / 4 * 4) & 15;
  const int pattern = kSTQ10Pattern[16 * static_cast<uint32_t>(r.bit("signs", b, g)) + slot];
  return static_cast<float>((pattern >> (i % 64 / 16 * 2) & 3) - 1) * r.half("d", b);
}

float nvfp4(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint32_t dword = r.field("qs", b, i / 16 * 2 + i % 8 / 4);
  const uint32_t code = dword >> (8 * (i % 4) + i % 16 / 8 * 4) & 15;
  return static_cast<float>(kFP4Doubled[code]) * (0.5f * nvfp4_scale(r.byte("d", b, i / 16)));
}

float iq4_xs(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint64_t g = i / 32;
  const uint32_t code = r.field("qs", b, 4 * g + i % 16 / 4) >> (8 * (i % 4) + i % 32 / 16 * 4) & 15;
  const int scale = static_cast<int>((r.field("sl", b, 0) >> (4 * g) & 15) | (r.field("sh", b, 0) >> (2 * g) & 3) << 4);
  return r.half("d", b) * static_cast<float>(scale - 32) * static_cast<float>(kIQ4Levels[code]);
}

// Codebooks: g is the group of 32, l the eight weights in it, v all eights, q all fours.
float signed_by(float magnitude, uint32_t signs, uint64_t j) {
  return signs >> j & 1 ? -magnitude : magnitude;
}
float magnitude8(uint64_t entry, uint64_t i) {
  return static_cast<float>(entry >> (8 * (i % 8)) & 255);
}
float magnitude4(uint32_t entry, uint64_t i) {
  return static_cast<float>(entry >> (8 * (i % 4)) & 255);
}

float iq2_xxs(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint32_t signs = r.field("signs", b, i / 32);
  const float scale = r.half("d", b) * (0.5f + static_cast<float>(signs >> 28)) * 0.25f;
  return signed_by(scale * magnitude8(iq2_xxs_grid()[r.byte("qs", b, i / 8)], i),
                   iq_signs(signs >> (7 * (i % 32 / 8)) & 127), i % 8);
}
float iq2_nibble_scale(const FieldReader& r, uint64_t b, uint64_t i) {
  const int sub = r.byte("sc", b, i / 32) >> (i % 32 / 16 * 4) & 15;
  return r.half("d", b) * (0.5f + static_cast<float>(sub)) * 0.25f;
}
float iq2_xs(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint32_t word = r.field("qs", b, i / 16) >> (i % 16 / 8 * 16) & 0xffff;
  return signed_by(iq2_nibble_scale(r, b, i) * magnitude8(iq2_xs_grid()[word & 511], i), iq_signs(word >> 9), i % 8);
}
float iq2_s(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint32_t index = r.byte("qs", b, i / 8) | (r.byte("qh", b, i / 32) >> (i % 32 / 8 * 2) & 3u) << 8;
  return signed_by(iq2_nibble_scale(r, b, i) * magnitude8(iq2_s_grid()[index], i), r.byte("signs", b, i / 8), i % 8);
}
float iq3_xxs(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint32_t signs = r.field("signs", b, i / 32);
  const float scale = r.half("d", b) * (0.5f + static_cast<float>(signs >> 28)) * 0.5f;
  return signed_by(scale * magnitude4(iq3_xxs_grid()[r.byte("qs", b, i / 4)], i),
                   iq_signs(signs >> (7 * (i % 32 / 8)) & 127), i % 8);
}
float iq3_s(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint32_t index = r.byte("qs", b, i / 4) | (r.byte("qh", b, i / 32) >> (i % 32 / 4) & 1u) << 8;
  const int sub = r.byte("sc", b, i / 64) >> (i / 32 % 2 * 4) & 15;
  return signed_by(r.half("d", b) * static_cast<float>(1 + 2 * sub) * magnitude4(iq3_s_grid()[index], i),
                   r.byte("signs", b, i / 8), i % 8);
}
float level8(uint32_t index, uint64_t i, bool down) {
  return signed_code(static_cast<uint32_t>(iq1_grid()[index] >> (8 * (i % 8)))) + (down ? -0.125f : 0.125f);
}
float iq1_s(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint32_t high = r.field("qh", b, i / 64) >> (i / 32 % 2 * 16) & 0xffff;
  const uint32_t index = r.byte("qs", b, i / 8) | (high >> (i % 32 / 8 * 3) & 7) << 8;
  return r.half("d", b) * static_cast<float>(2 * (high >> 12 & 7) + 1) * level8(index, i, high >> 15);
}
float iq1_m(const FieldReader& r, uint64_t b, uint64_t i) {
  const uint32_t w0 = r.field("sc", b, 0), w1 = r.field("sc", b, 1);
  const uint32_t d = (w0 >> 12 & 0xf) | (w0 >> 24 & 0xf0) | (w1 >> 4 & 0xf00) | (w1 >> 16 & 0xf000);
  const uint32_t high = r.byte("qh", b, i / 16) >> (i % 16 / 8 * 4) & 15;
  const uint32_t index = r.byte("qs", b, i / 8) | (high & 7) << 8;
  const uint32_t scale = r.field("sc", b, i / 128) >> (i % 128 / 64 * 16 + i % 64 / 16 * 3) & 7;
  return half_to_float(static_cast<uint16_t>(d)) * static_cast<float>(2 * scale + 1) * level8(index, i, high >> 3);
}

struct MeaningCase {
  std::string_view codec;
  WeightOf weight; ///< i counts inside the block
};

const MeaningCase kMeanings[] = {
    {"f32", [](const FieldReader& r, uint64_t b, uint64_t) { return std::bit_cast<float>(r.field("w", b, 0)); }},
    {"f16", [](const FieldReader& r, uint64_t b, uint64_t) { return r.half("w", b); }},
    {"bf16", [](const FieldReader& r, uint64_t b, uint64_t) { return std::bit_cast<float>(r.field("w", b, 0) << 16); }},
    {"q8_row",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return signed_code(r.byte("q", b, i)) * half_to_float(static_cast<uint16_t>(r.header("d", 0)));
     }},
    {"q8_2f",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return signed_code(r.byte("q", b, i)) * half_to_float(static_cast<uint16_t>(r.header("d", 0))) *
              r.column_scale(4 * b + i);
     }},
    {"q4_block", q4_nibble},
    {"q4_tiled", q4_nibble},
    {"q4tp", q4tp},
    {"q4_0", q4_nibble},
    {"q4_1", [](const FieldReader& r, uint64_t b,
                uint64_t i) { return static_cast<float>(r.nibble(b, i)) * r.half("d", b) + r.half("m", b); }},
    {"q5_0",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return static_cast<float>((r.nibble(b, i) | r.fifth_bit(b, i) << 4) - 16) * r.half("d", b);
     }},
    {"q5_1",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return static_cast<float>(r.nibble(b, i) | r.fifth_bit(b, i) << 4) * r.half("d", b) + r.half("m", b);
     }},
    {"q8_0",
     [](const FieldReader& r, uint64_t b, uint64_t i) { return signed_code(r.byte("q", b, i)) * r.half("d", b); }},
    {"q4_k", [](const FieldReader& r, uint64_t b, uint64_t i) { return k_quant(r, b, i, k_nibble(r, b, i)); }},
    {"q5_k",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return k_quant(r, b, i, k_nibble(r, b, i) | (r.byte("qh", b, i % 32) >> (i / 32) & 1) << 4);
     }},
    {"q6_k", q6_k},
    {"iq4_nl", iq4_nl},
    {"blr_u",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return half_to_float(static_cast<uint16_t>(r.header("d", 0))) * (r.bit("qs", b, i) ? 1.0f : -1.0f);
     }},
    {"blr_v",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return half_to_float(static_cast<uint16_t>(r.header("d", 0))) * (r.bit("qs", b, i) ? 1.0f : -1.0f) *
              r.column_scale(32 * b + i);
     }},
    {"q1", sign_of},
    {"q1s", sign_of},
    {"q1t", q1t},
    {"q2tp", q2tp<3>},
    {"q2tp_affine", q2tp<2>},
    {"q1g", sign_of},
    {"mxfp4",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return kFP4Values[r.nibble(b, i)] * e8m0_scale(static_cast<uint8_t>(r.field("e", b, 0)));
     }},
    {"q2_k", q2_k},
    {"q3_k", q3_k},
    {"q8_k",
     [](const FieldReader& r, uint64_t b, uint64_t i) { return signed_code(r.byte("q", b, i)) * r.word("d", b); }},
    {"iq4_xs", iq4_xs},
    {"iq2_xxs", iq2_xxs},
    {"iq2_xs", iq2_xs},
    {"iq2_s", iq2_s},
    {"iq3_xxs", iq3_xxs},
    {"iq3_s", iq3_s},
    {"iq1_s", iq1_s},
    {"iq1_m", iq1_m},
    {"tq1_0", ternary_of},
    {"tq2_0", ternary_pair},
    {"mxfp4_ggml",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return static_cast<float>(kFP4Doubled[r.nibble(b, i)]) *
              fp4_half_scale(static_cast<uint8_t>(r.field("e", b, 0)));
     }},
    {"nvfp4", nvfp4},
    {"q1_0", sign_of},
    {"q2_0", ternary_pair},
    {"q2_0_g128", ternary_pair},
    {"stq1_0", stq1_0},
    {"g8_0",
     [](const FieldReader& r, uint64_t b, uint64_t i) {
       return static_cast<float>(r.pair("qs", b, i) - 1) *
              bfloat_to_float(static_cast<uint16_t>(r.field("d", b, i / 8)));
     }},
    {"ptq1_0", ternary_of},
    {"fv5", fv5},
    {"fv5b",
     [](const FieldReader& r, uint64_t b, uint64_t i) { return signed_code(r.byte("q", b, i)) * r.word("d", b); }},
    {"i2_s", [](const FieldReader& r, uint64_t b,
                uint64_t i) { return static_cast<float>(r.pair("qs", b, i) - 1) * r.tensor_scale(); }},
    {"i8_s",
     [](const FieldReader& r, uint64_t b, uint64_t i) { return signed_code(r.byte("q", b, i)) * r.tensor_scale(); }},
};

TEST(FieldMeaning, WeightsFollowFromTheFieldsAlone) {
  for (const MeaningCase& test : kMeanings) {
    SCOPED_TRACE(std::string(test.codec));
    const Codec& codec = *find_codec(test.codec);
    const uint64_t cols = codec.block == 1 ? 39 : codec.block * 8;
    const uint64_t rows = 21;
    // Overlays lie beside the fields.
    std::vector<uint8_t> payload = random_payload(codec, rows, cols, 11);
    if (codec.variable_size) {
      payload.resize(*overlay_offset(codec, LayoutId::kVerbatim, rows, cols));
      payload.resize(*codec.payload_bytes(codec, rows, cols), 0);
    }
    const std::vector<uint8_t> bytes = packed(codec, LayoutId::kR16, payload, rows, cols);
    const StatusOr<R16Format> format = r16_format(codec, cols);
    ASSERT_TRUE(format.ok()) << format.status().message();
    for (uint64_t row = 0; row < rows; ++row) {
      const FieldReader reader(*format, bytes, rows, row);
      const std::vector<uint32_t> want = reference_row(codec, payload, rows, cols, row);
      for (uint64_t c = 0; c < cols; ++c) {
        const float got = test.weight(reader, c / format->block, c % format->block);
        const float expected = std::bit_cast<float>(want[c]);
        if (std::isnan(expected))
          ASSERT_TRUE(std::isnan(got)) << "weight [" << row << ", " << c << "]";
        else
          ASSERT_EQ(got, expected) << "weight [" << row << ", " << c << "]";
      }
    }
  }
}

TEST(FieldMeaning, CoversEveryCodec) {
  EXPECT_EQ(std::size(kMeanings), row_group_codecs().size());
}

TEST(FieldMeaning, PaddingIsZero) {
  const Codec& codec = *find_codec("q8_2f");
  const std::vector<uint8_t> payload(*codec.payload_bytes(codec, 17, 37), 0xff);
  const std::vector<uint8_t> bytes = packed(codec, LayoutId::kR16, payload, 17, 37);
  const StatusOr<R16Format> format = r16_format(codec, 37);
  ASSERT_TRUE(format.ok());
  EXPECT_EQ(format->tensor_bytes, 128u);
  for (uint64_t i = 2 * 37; i < format->tensor_bytes; ++i)
    EXPECT_EQ(bytes[i], 0) << "tensor part, byte " << i;
  for (uint64_t row = 0; row < 17; ++row) {
    const FieldReader reader(*format, bytes, 17, row);
    EXPECT_EQ(reader.field("q", 9, 0), 0xffu) << "row " << row;
  }
}

} // namespace
} // namespace cortiq::formats
