// What layout.h promises to kernels: the place of every field, and what its bits mean. Weights are computed here from
// fields alone, by the address formula and the field comments of that header, and held against the reference decode.

#include <cmath>

#include "formats/codec/half.h"
#include "formats/codec/k_quant_scales.h"
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
  constexpr float kLevels[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  return kLevels[r.nibble(block, i)] * r.half("d", block);
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
};

TEST(FieldMeaning, WeightsFollowFromTheFieldsAlone) {
  for (const MeaningCase& test : kMeanings) {
    SCOPED_TRACE(std::string(test.codec));
    const Codec& codec = *find_codec(test.codec);
    const uint64_t cols = codec.block == 1 ? 39 : codec.block * 8;
    const uint64_t rows = 21;
    const std::vector<uint8_t> payload = random_payload(codec, rows, cols, 11);
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
  EXPECT_EQ(std::size(kMeanings), weight_codecs().size());
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
