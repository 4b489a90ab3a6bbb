#include "compiler/emit/weight_filler.h"

#include <cstring>

#include "dialects/CMF/IR/CMF.h"
#include "formats/checked_math.h"
#include "formats/codec/low_rank.h"
#include "formats/layout/layout.h"

using namespace mlir;

namespace cortiq::compiler {
namespace {

/// All that filling one weight takes, free of IR, so that threads can share it.
struct Job {
  std::string name;
  const formats::Codec* codec;       ///< in the artifact
  const formats::Codec* sourceCodec; ///< in the file
  formats::LayoutId layout;
  uint64_t rows, cols;
  float add;
  std::span<const uint8_t> payload;
  uint64_t sourceRows;                         ///< of the whole payload; values for a vector
  std::vector<uint32_t> rowMap;                ///< empty = all rows in order
  std::optional<uint64_t> path = std::nullopt; ///< the payload is blr, the weight a factor of this path
};

/// Vectors are decoded to f32; a matrix of one row is packed as any other.
bool isVector(const Job& job) {
  return job.rows == 1 && job.codec->id == formats::CodecId::kF32 && job.layout == formats::LayoutId::kVerbatim;
}

Status fillVector(const Job& job, std::span<uint8_t> out) {
  // A vector is one row of the file's tensor, however many of its values are taken.
  std::vector<float> values(job.sourceRows);
  job.sourceCodec->decode_row(job.payload.data(), 1, job.sourceRows, 0, values.data());
  for (uint64_t i = 0; i < job.cols; ++i) {
    float value = values[job.rowMap.empty() ? i : job.rowMap[i]] + job.add;
    std::memcpy(out.data() + i * sizeof(float), &value, sizeof(float));
  }
  return {};
}

// Rows of another codec as floats.
Status fillDecoded(const Job& job, std::span<uint8_t> out) {
  std::vector<float> row(job.cols);
  for (uint64_t r = 0; r < job.rows; ++r) {
    job.sourceCodec->decode_row(job.payload.data(), job.sourceRows, job.cols, job.rowMap.empty() ? r : job.rowMap[r],
                                row.data());
    std::memcpy(out.data() + r * job.cols * sizeof(float), row.data(), job.cols * sizeof(float));
  }
  return {};
}

Status fill(const Job& job, std::span<uint8_t> out) {
  if (isVector(job))
    return fillVector(job, out);
  if (job.path) {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<uint8_t> factor,
                            formats::low_rank_factor(job.payload, job.codec->id, *job.path));
    return formats::pack(*job.codec, job.layout, factor, job.sourceRows, job.cols, job.rowMap, out);
  }
  if (job.codec != job.sourceCodec)
    return fillDecoded(job, out);
  return formats::pack(*job.codec, job.layout, job.payload, job.sourceRows, job.cols, job.rowMap, out);
}

/// Holds a low-rank payload against the factor that `job` takes from it.
Status checkFactor(const Job& job) {
  CORTIQ_ASSIGN_OR_RETURN(const formats::LowRankShape shape, formats::read_low_rank(job.payload));
  const bool isU = job.codec->id == formats::CodecId::kBLRU;
  const uint64_t rows = isU ? shape.rows : shape.rank, cols = isU ? shape.rank : shape.cols;
  if (*job.path >= shape.paths || rows != job.sourceRows || cols != job.cols)
    return invalid("is factor [" + std::to_string(job.sourceRows) + ", " + std::to_string(job.cols) + "] of path " +
                   std::to_string(*job.path + 1) + ", which its low-rank payload does not have");
  return {};
}

StatusOr<Job> makeJob(kernel::WeightOp weight, const ModelBytes& model) {
  auto find = [](llvm::StringRef name) { return formats::find_codec({name.data(), name.size()}); };
  Job job{weight.getSymName().str(),
          find(weight.getCodec()),
          find(weight.getSourceCodec().value_or(weight.getCodec())),
          static_cast<formats::LayoutId>(weight.getLayout()),
          weight.getRows(),
          weight.getCols(),
          weight.getAdd().convertToFloat(),
          {},
          0,
          {}};
  const bool vector = isVector(job);
  auto source = dyn_cast_if_present<cmf::SourceAttr>(weight.getSourceAttr());
  if (!source)
    return internal_error("weight " + job.name + " has no source in the model file");
  std::span<const uint8_t> file = model(source.getFile());
  if (!formats::range_fits(source.getOffset(), source.getBytes(), file.size()))
    return invalid("weight " + job.name + " lies outside of its file");
  job.payload = file.subspan(source.getOffset(), source.getBytes());
  job.sourceRows = vector ? job.cols : job.rows;
  if (auto map = dyn_cast_if_present<cmf::RowsAttr>(weight.getRowMapAttr())) {
    job.sourceRows = map.getOf();
    for (uint64_t r = 0, n = vector ? job.cols : job.rows; r < n; ++r) {
      int64_t row = map.sourceRow(r);
      if (row < 0 || uint64_t(row) >= job.sourceRows || row > UINT32_MAX)
        return internal_error("weight " + job.name + " takes row " + std::to_string(row) + " of " +
                              std::to_string(job.sourceRows));
      job.rowMap.push_back(static_cast<uint32_t>(row));
    }
  }
  if (source.getLowRank() && source.getLowRank().getPath() != 0) {
    job.path = source.getLowRank().getPath() - 1;
    CORTIQ_RETURN_IF_ERROR(checkFactor(job).with_prefix("weight " + job.name));
    return job;
  }
  auto expected = vector ? job.sourceCodec->payload_bytes(*job.sourceCodec, 1, job.sourceRows)
                         : job.sourceCodec->payload_bytes(*job.sourceCodec, job.sourceRows, job.cols);
  if (!expected.ok())
    return expected.status().with_prefix("weight " + job.name);
  if (job.sourceCodec->variable_size)
    CORTIQ_RETURN_IF_ERROR(formats::check_payload(*job.sourceCodec, job.payload, vector ? 1 : job.sourceRows,
                                                  vector ? job.sourceRows : job.cols, /*strict=*/false)
                               .with_prefix("weight " + job.name));
  else if (*expected != job.payload.size())
    return invalid("weight " + job.name + " has " + std::to_string(job.payload.size()) +
                   " bytes in the file, its shape needs " + std::to_string(*expected));
  return job;
}

} // namespace

StatusOr<WeightFiller> makeWeightFiller(ModuleOp module, const ModelBytes& model,
                                        std::span<const std::unique_ptr<artifact::WeightT>> table,
                                        std::span<const uint32_t> copies) {
  auto jobs = std::make_shared<std::vector<Job>>();
  for (auto weight : module.getOps<kernel::WeightOp>()) {
    if (weight->hasAttr(kernel::kBlendAttr)) { // made at run time: nothing to store
      jobs->push_back({});
      continue;
    }
    CORTIQ_ASSIGN_OR_RETURN(Job job, makeJob(weight, model));
    if (job.codec->variable_size) {
      StatusOr<uint64_t> bytes =
          formats::packed_payload_bytes(*job.codec, job.layout, job.payload, job.sourceRows, job.cols, job.rowMap);
      if (!bytes.ok())
        return bytes.status().with_prefix("weight " + job.name);
      table[jobs->size()]->bytes = *bytes;
    }
    jobs->push_back(std::move(job));
  }
  for (const uint32_t original : copies) {
    Job job = (*jobs)[original];
    job.layout = static_cast<formats::LayoutId>(table[jobs->size()]->layout);
    if (job.codec && job.codec->variable_size) {
      CORTIQ_ASSIGN_OR_RETURN(
          table[jobs->size()]->bytes,
          formats::packed_payload_bytes(*job.codec, job.layout, job.payload, job.sourceRows, job.cols, job.rowMap));
    }
    jobs->push_back(std::move(job));
  }
  return WeightFiller(
      [jobs](size_t index, std::span<uint8_t> out) { return out.empty() ? Status() : fill((*jobs)[index], out); });
}

} // namespace cortiq::compiler
