// GGUF's blocks of 32. Q4_0, Q4_1, Q8_0 and IQ4_NL are records as they stand in the file; Q5_0 and Q5_1 get their fifth
// bits in the order in which a kernel meets the weights, four neighbours a dword.

#include "formats/layout/code_order.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kQ40Fields[] = {{"d", 0, 2, 1}, {"qs", 2, 4, 4}};
constexpr LayoutField kQ41Fields[] = {{"d", 0, 2, 1}, {"m", 2, 2, 1}, {"qs", 4, 4, 4}};
constexpr LayoutField kQ50Fields[] = {{"d", 0, 2, 1}, {"qh", 2, 4, 1}, {"qs", 6, 4, 4}};
constexpr LayoutField kQ51Fields[] = {{"d", 0, 2, 1}, {"m", 2, 2, 1}, {"qh", 4, 4, 1}, {"qs", 8, 4, 4}};
constexpr LayoutField kQ80Fields[] = {{"d", 0, 2, 1}, {"q", 2, 4, 8}};

template <uint32_t kBytes, uint32_t kHigh, auto Permute>
void permute_high(const uint8_t* from, uint8_t* to) {
  std::memcpy(to, from, kBytes);
  store_u32(to + kHigh, Permute(load_u32(from + kHigh)));
}

// Random blocks whose scale d lies around `d`; with kMinimum, m at bytes 2..3 lies around -`m`.
template <uint32_t kBytes, bool kMinimum>
void fill_blocks(RandomStream& random, uint64_t cols, uint8_t* blocks, float d, float m) {
  const HalfRange d_range = scales_around(d);
  const HalfRange m_range = scales_around(m);
  for (uint64_t b = 0; b < cols / 32; ++b, blocks += kBytes) {
    random.bytes(blocks, kBytes);
    store_u16(blocks, random.half_in(d_range));
    if (kMinimum)
      store_u16(blocks + 2, random.half_in(m_range) | 0x8000u);
  }
}

// The divisors are the deviations of the weights at d = 1: of uniform codes alone, or of codes, d and m together, with
// m around the middle of the codes so that weights center on 0.
void fill_q4_0(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<18, false>(random, cols, row.plane[0], kFillDeviation / 4.61f, 0.0f);
}
void fill_q4_1(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  constexpr float kD = kFillDeviation / 4.8f;
  fill_blocks<20, true>(random, cols, row.plane[0], kD, 7.5f * kD);
}
void fill_q5_0(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<22, false>(random, cols, row.plane[0], kFillDeviation / 9.23f, 0.0f);
}
void fill_q5_1(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  constexpr float kD = kFillDeviation / 9.63f;
  fill_blocks<24, true>(random, cols, row.plane[0], kD, 15.5f * kD);
}
void fill_q8_0(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<34, false>(random, cols, row.plane[0], kFillDeviation / 73.9f, 0.0f);
}
void fill_iq4_nl(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  fill_blocks<18, false>(random, cols, row.plane[0], kFillDeviation / 67.2f, 0.0f);
}

} // namespace

constinit const RecordForm kQ40Form = {
    .codec = CodecId::kQ4_0,
    .block = 32,
    .block_bytes = 18,
    .fields = kQ40Fields,
    .planes = block_planes<32, 18>,
    .write_records = copy_records<18>,
    .decode = decode_copied,
    .fill_row = fill_q4_0,
};

constinit const RecordForm kQ41Form = {
    .codec = CodecId::kQ4_1,
    .block = 32,
    .block_bytes = 20,
    .fields = kQ41Fields,
    .planes = block_planes<32, 20>,
    .write_records = copy_records<20>,
    .decode = decode_copied,
    .fill_row = fill_q4_1,
};

constinit const RecordForm kQ50Form = {
    .codec = CodecId::kQ5_0,
    .block = 32,
    .block_bytes = 22,
    .fields = kQ50Fields,
    .planes = block_planes<32, 22>,
    .write_records = convert_records<22, permute_high<22, 2, bits_to_record>>,
    .decode = decode_converted<22, permute_high<22, 2, bits_from_record>>,
    .fill_row = fill_q5_0,
};

constinit const RecordForm kQ51Form = {
    .codec = CodecId::kQ5_1,
    .block = 32,
    .block_bytes = 24,
    .fields = kQ51Fields,
    .planes = block_planes<32, 24>,
    .write_records = convert_records<24, permute_high<24, 4, bits_to_record>>,
    .decode = decode_converted<24, permute_high<24, 4, bits_from_record>>,
    .fill_row = fill_q5_1,
};

constinit const RecordForm kQ80Form = {
    .codec = CodecId::kQ8_0,
    .block = 32,
    .block_bytes = 34,
    .fields = kQ80Fields,
    .planes = block_planes<32, 34>,
    .write_records = copy_records<34>,
    .decode = decode_copied,
    .fill_row = fill_q8_0,
};

constinit const RecordForm kIQ4NLForm = {
    .codec = CodecId::kIQ4_NL,
    .block = 32,
    .block_bytes = 18,
    .fields = kQ40Fields,
    .planes = block_planes<32, 18>,
    .write_records = copy_records<18>,
    .decode = decode_copied,
    .fill_row = fill_iq4_nl,
};

} // namespace cortiq::formats
