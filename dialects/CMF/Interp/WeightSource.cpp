#include "dialects/CMF/Interp/WeightSource.h"

#include "formats/codec/low_rank.h"

namespace cortiq::cmf {

namespace {

int64_t ownRows(WeightOp op) {
  return op.getType().isMatrix() ? op.getType().getRows() : op.getType().getCols();
}

} // namespace

int64_t sourceRows(WeightOp op) {
  if (RowsAttr rows = op.getRowsAttr())
    return rows.getOf();
  return ownRows(op);
}

std::vector<uint32_t> rowMap(WeightOp op) {
  RowsAttr rows = op.getRowsAttr();
  if (!rows)
    return {};
  std::vector<uint32_t> map(ownRows(op));
  bool identity = static_cast<int64_t>(map.size()) == rows.getOf();
  for (size_t i = 0; i < map.size(); ++i) {
    map[i] = static_cast<uint32_t>(rows.sourceRow(i));
    identity = identity && map[i] == i;
  }
  return identity ? std::vector<uint32_t>() : map;
}

void decodeRow(WeightOp op, std::span<const uint8_t> payload, int64_t row, float* out) {
  const formats::Codec& codec = op.getType().getCodec();
  RowsAttr rows = op.getRowsAttr();
  codec.decode_row(payload.data(), sourceRows(op), op.getType().getCols(), rows ? rows.sourceRow(row) : row, out);
}

StatusOr<std::vector<float>> decodeWeight(WeightOp op, std::span<const uint8_t> payload) {
  const WeightType type = op.getType();
  const formats::Codec& codec = type.getCodec();
  std::vector<uint8_t> factor;
  if (SourceAttr source = op.getSourceAttr(); source && source.getLowRank() && source.getLowRank().getPath() != 0) {
    CORTIQ_ASSIGN_OR_RETURN(factor, formats::low_rank_factor(payload, codec.id, source.getLowRank().getPath() - 1));
    payload = factor;
  }
  const int64_t fileRows = sourceRows(op);
  const uint64_t payloadRows = type.isMatrix() ? fileRows : 1,
                 payloadCols = type.isMatrix() ? type.getCols() : fileRows;
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, codec.payload_bytes(codec, payloadRows, payloadCols));
  if (codec.variable_size)
    CORTIQ_RETURN_IF_ERROR(formats::check_payload(codec, payload, payloadRows, payloadCols, /*strict=*/false)
                               .with_prefix("weight '" + op.getName().str() + "'"));
  else if (bytes != payload.size())
    return invalid("weight '" + op.getName().str() + "' has " + std::to_string(payload.size()) + " bytes, not the " +
                   std::to_string(bytes) + " of its shape");
  std::vector<float> values(type.getRows() * type.getCols());
  if (type.isMatrix()) {
    for (int64_t row = 0; row < type.getRows(); ++row)
      decodeRow(op, payload, row, values.data() + row * type.getCols());
    return values;
  }
  std::vector<float> all(fileRows);
  codec.decode_row(payload.data(), 1, fileRows, 0, all.data());
  RowsAttr rows = op.getRowsAttr();
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = all[rows ? rows.sourceRow(i) : i];
  return values;
}

} // namespace cortiq::cmf
