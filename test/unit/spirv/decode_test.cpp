// Every codec's decoder on the device gives the reference decode's bits, for payloads of random bytes: infinities, NaN
// and subnormal scales are among them.

#include "test/unit/layout/tensors.h"
#include "test/unit/spirv/activations.h"
#include "test/unit/spirv/device.h"

#include "codegen/spirv/specialise.h"

namespace cortiq::codegen {
namespace {

using formats::Codec;
using formats::LayoutId;

/// NaN of any payload is one value; unless what is below 2^-126 `is_kept`, so is what levels up to 127 make of it.
std::vector<uint32_t> comparable(std::vector<uint32_t> bits, bool is_kept) {
  for (uint32_t& b : bits)
    if ((b & 0x7fffffffu) > 0x7f800000u)
      b = 0x7fc00000u;
    else if (!is_kept && (b & 0x7fffffffu) < 8u << 23)
      b &= 0x80000000u;
  return bits;
}

class Decode : public ShaderTest {
protected:
  void check(const Codec& codec, uint32_t rows, uint32_t cols) {
    SCOPED_TRACE(std::string(codec.name) + " of " + std::to_string(cols));
    const std::vector<uint8_t> payload = formats::random_payload(codec, rows, cols, 11);
    Dispatch d;
    d.buffers[kWeights] = words_of(formats::packed(codec, LayoutId::kPlanes, payload, rows, cols));
    d.buffers[kArena].assign(rows * cols, 0x7fc00001u);
    d.buffers[kStep] = {rows, 0, 0, 0};
    for (uint32_t r = 0; r < rows; ++r)
      d.buffers[kStep].push_back(rows - 1 - r);
    d.push = {0, 0, 0, 0, 0, 0, cols};
    d.grid = {(cols + 127) / 128, 1, rows};
    run("embed_" + std::string(codec.name), {{0, 32}, {1, rows}, {2, cols}}, d);
    if (HasFatalFailure())
      return;
    for (uint32_t r = 0; r < rows; ++r) {
      const auto first = d.buffers[kArena].begin() + r * cols;
      const bool is_kept = device->keeps_subnormals();
      ASSERT_EQ(comparable({first, first + cols}, is_kept),
                comparable(formats::reference_row(codec, payload, rows, cols, rows - 1 - r), is_kept))
          << "row " << rows - 1 - r;
    }
  }
};

TEST_F(Decode, EveryCodecWithPlanes) {
  int checked = 0;
  for (const Codec* codec : formats::row_group_codecs()) {
    ASSERT_TRUE(has_shader_template("matmul_" + std::string(codec->name))) << codec->name;
    check(*codec, 5, codec->block < 32 ? 104 : (codec->block == 32 ? 1120 : 3 * codec->block));
    ++checked;
  }
  EXPECT_EQ(checked, 51);
}

// Their rows are no records, and of several widths of codes.
TEST_F(Decode, StreamsOfCodes) {
  for (const char* name : {"vbit", "vbit_ro"})
    check(*formats::find_codec(name), 13, 1120);
}

TEST_F(Decode, RowsThatAreNoWholeGroups) {
  for (const char* name : {"f16", "f32", "bf16", "q8_row", "i8_s"})
    check(*formats::find_codec(name), 3, 45);
}

} // namespace
} // namespace cortiq::codegen
