// Codecs whose files keep the 2-bit codes of four neighbouring weights in a byte: Q2_0 (64 and 128), G8_0. Records have
// them in record order (code_order.h).

#include "formats/layout/code_order.h"
#include "formats/layout/fill_codes.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kQ20Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 4}};
constexpr LayoutField kQ20G128Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 8}};
constexpr LayoutField kG80Fields[] = {{"d", 0, 2, 4}, {"qs", 8, 4, 2}};

// Scales and codes stand where the file has them; the exchange of codes is its own inverse.
template <uint32_t kHead, uint32_t kDwords>
void exchange(const uint8_t* from, uint8_t* to) {
  std::memcpy(to, from, kHead);
  convert_dwords<transpose_pairs>(from + kHead, to + kHead, kDwords);
}

template <uint32_t kBlock>
void fill_q2_0(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  constexpr uint32_t kBytes = 2 + kBlock / 4;
  const HalfRange scales = scales_around(kFillDeviation / 0.7071f);
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / kBlock; ++b, block += kBytes) {
    random.bytes(block, kBytes);
    make_ternary(block + 2, kBlock / 16);
    store_u16(block, random.half_in(scales));
  }
}

void fill_g8_0(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 32; ++b, block += 16) {
    random.bytes(block + 8, 8);
    make_ternary(block + 8, 2);
    for (int k = 0; k < 4; ++k)
      store_u16(block + 2 * k,
                static_cast<uint16_t>(std::bit_cast<uint32_t>(random.around(kFillDeviation / 0.7071f)) >> 16));
  }
}

} // namespace

constinit const RecordForm kQ20Form = {
    .codec = CodecId::kQ2_0,
    .block = 64,
    .block_bytes = 18,
    .fields = kQ20Fields,
    .planes = block_planes<64, 18>,
    .write_records = convert_records<18, exchange<2, 4>>,
    .decode = decode_converted<18, exchange<2, 4>>,
    .fill_row = fill_q2_0<64>,
};

constinit const RecordForm kQ20G128Form = {
    .codec = CodecId::kQ2_0_G128,
    .block = 128,
    .block_bytes = 34,
    .fields = kQ20G128Fields,
    .planes = block_planes<128, 34>,
    .write_records = convert_records<34, exchange<2, 8>>,
    .decode = decode_converted<34, exchange<2, 8>>,
    .fill_row = fill_q2_0<128>,
};

constinit const RecordForm kG80Form = {
    .codec = CodecId::kG8_0,
    .block = 32,
    .block_bytes = 16,
    .fields = kG80Fields,
    .planes = block_planes<32, 16>,
    .write_records = convert_records<16, exchange<8, 2>>,
    .decode = decode_converted<16, exchange<8, 2>>,
    .fill_row = fill_g8_0,
};

} // namespace cortiq::formats
