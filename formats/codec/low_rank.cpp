#include "formats/codec/low_rank.h"

#include <string>

#include "formats/codec/half.h"

namespace cortiq::formats {

StatusOr<LowRankShape> read_low_rank(std::span<const uint8_t> payload) {
  if (payload.size() < kLowRankHeaderBytes)
    return invalid("has " + std::to_string(payload.size()) + " bytes, not even a low-rank header");
  const LowRankShape shape = {payload[2], load_u32(payload.data() + 4), load_u32(payload.data() + 8),
                              load_u32(payload.data() + 12)};
  CORTIQ_RETURN_IF_ERROR(check_payload(codec_info(CodecId::kBLR), payload, shape.rows, shape.cols, /*strict=*/false));
  return shape;
}

StatusOr<std::vector<uint8_t>> low_rank_factor(std::span<const uint8_t> payload, CodecId factor, uint64_t path) {
  CORTIQ_ASSIGN_OR_RETURN(const LowRankShape shape, read_low_rank(payload));
  if (path >= shape.paths)
    return invalid("has " + std::to_string(shape.paths) + " low-rank paths, but path " + std::to_string(path) +
                   ", counted from 0, was asked for");
  if (factor != CodecId::kBLRU && factor != CodecId::kBLRV)
    return internal_error(std::string(codec_info(factor).name) + " is no factor of a low-rank tensor");
  const uint8_t* h = payload.data() + kLowRankHeaderBytes + path * low_rank_path_bytes(shape);
  const uint8_t* g = h + 2 * shape.rows;
  const uint8_t* l = g + 2 * shape.cols;
  const uint8_t* u = l + 2 * shape.rank;
  const uint8_t* v = u + shape.rows * (shape.rank / 8);
  const uint8_t* end = v + shape.rank * (shape.cols / 8);
  std::vector<uint8_t> out;
  const auto append = [&](const uint8_t* from, const uint8_t* to) { out.insert(out.end(), from, to); };
  if (factor == CodecId::kBLRU) {
    append(u, v);
    append(h, g);
  } else {
    append(v, end);
    append(l, u);
    append(g, l);
  }
  return out;
}

} // namespace cortiq::formats
