// Codecs of FP4 codes: CMF's mxfp4 (brought from pairs to halves), ggml's MXFP4 and NVFP4 (as they stand in the file).

#include "formats/layout/nibble_order.h"
#include "formats/layout/record_forms.h"

namespace cortiq::formats {
namespace {

constexpr LayoutField kMXFields[] = {{"e", 0, 1, 1}, {"qs", 1, 4, 4}};
constexpr LayoutField kNVFields[] = {{"d", 0, 4, 1}, {"qs", 4, 4, 8}};
constexpr uint32_t kMXBytes = 17;

PlaneSizes mxfp4_planes(uint64_t cols) {
  return {.row_bytes = {cols / 2, cols / 32}};
}

void write_mxfp4(const RowPlanes& row, uint64_t, uint64_t first, uint64_t count, uint8_t* out) {
  for (uint64_t b = first; b < first + count; ++b, out += kMXBytes) {
    out[0] = row.plane[1][b];
    pairs_to_halves(row.plane[0] + 16 * b, out + 1);
  }
}

void decode_mxfp4(const PackedRow& row, uint64_t first, uint64_t count, uint64_t weights, float* out) {
  uint8_t records[kDecodeChunkBytes];
  uint8_t payload[kDecodeChunkBytes];
  row.read_records(first, count, records);
  for (uint64_t b = 0; b < count; ++b) {
    halves_to_pairs(records + kMXBytes * b + 1, payload + 16 * b);
    payload[16 * count + b] = records[kMXBytes * b];
  }
  codec_info(CodecId::kMXFP4).decode_row(payload, 1, weights, 0, out);
}

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

constinit const RecordForm kMXFP4Form = {
    .codec = CodecId::kMXFP4,
    .block = 32,
    .block_bytes = kMXBytes,
    .fields = kMXFields,
    .planes = mxfp4_planes,
    .write_records = write_mxfp4,
    .decode = decode_mxfp4,
    .fill_row = fill_mxfp4,
};

constinit const RecordForm kMXFP4GGMLForm = {
    .codec = CodecId::kMXFP4_GGML,
    .block = 32,
    .block_bytes = kMXBytes,
    .fields = kMXFields,
    .planes = block_planes<32, kMXBytes>,
    .write_records = copy_records<kMXBytes>,
    .decode = decode_copied,
    .fill_row = fill_mxfp4_ggml,
};

constinit const RecordForm kNVFP4Form = {
    .codec = CodecId::kNVFP4,
    .block = 64,
    .block_bytes = 36,
    .fields = kNVFields,
    .planes = block_planes<64, 36>,
    .write_records = copy_records<36>,
    .decode = decode_copied,
    .fill_row = fill_nvfp4,
};

} // namespace cortiq::formats
