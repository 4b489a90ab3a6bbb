// Codecs of FP4 codes: CMF's mxfp4 (brought from pairs to halves), ggml's MXFP4 and NVFP4 (as they stand in the file).

#include "formats/layout/nibble_order.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kMXFields[] = {{"e", 0, 1, 1}, {"qs", 1, 4, 4}};
constexpr LayoutField kNVFields[] = {{"d", 0, 4, 1}, {"qs", 4, 4, 8}};
constexpr uint32_t kMXBytes = 17;

// The deviation of uniform codes is 2.926, so scales need a root mean square of 0.00683: 2^-7 in 11 of 16 cases, else
// 2^-8. (ggml's half scales go with doubled values: the same bytes.)
uint8_t random_e8m0(RandomStream& random) {
  return static_cast<uint8_t>(127 - (random.next() >> 60 < 11 ? 7 : 8));
}

void fill_mxfp4(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  random.bytes(row.plane[0], cols / 2);
  for (uint64_t b = 0; b < cols / 32; ++b)
    row.plane[1][b] = random_e8m0(random);
}

void fill_mxfp4_ggml(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 32; ++b, block += kMXBytes) {
    random.bytes(block + 1, 16);
    block[0] = random_e8m0(random);
  }
}

// The same with scales of 3 or 4 times 2^-9.
void fill_nvfp4(RandomStream& random, uint64_t cols, const MutableRowPlanes& row) {
  uint8_t* block = row.plane[0];
  for (uint64_t b = 0; b < cols / 64; ++b, block += 36) {
    random.bytes(block + 4, 32);
    for (int s = 0; s < 4; ++s)
      block[s] = random.next() >> 60 < 7 ? 4 : 3;
  }
}

} // namespace

constinit const RecordForm kMXFP4Form =
    joined_form<32, 1, 16, pairs_to_halves, halves_to_pairs>(CodecId::kMXFP4, kMXFields, fill_mxfp4);
constinit const RecordForm kMXFP4GGMLForm = copied_form<32, kMXBytes>(CodecId::kMXFP4_GGML, kMXFields, fill_mxfp4_ggml);
constinit const RecordForm kNVFP4Form = copied_form<64, 36>(CodecId::kNVFP4, kNVFields, fill_nvfp4);

} // namespace cortiq::formats
