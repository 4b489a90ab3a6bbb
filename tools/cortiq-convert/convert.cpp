#include "tools/cortiq-convert/convert.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/atomic_file.h"
#include "formats/cmf/cmf_stream_writer.h"
#include "formats/file_kind.h"
#include "formats/gguf/gguf_file.h"
#include "formats/page_release.h"
#include "formats/quote.h"
#include "formats/safetensors/safetensors_file.h"
#include "tools/cortiq-convert/gguf_source.h"
#include "tools/cortiq-convert/hf_source.h"
#include "tools/cortiq-convert/tensor_rows.h"
#include "tools/cortiq-convert/verify.h"

namespace cortiq::convert {

using formats::CmfStreamWriter;
using formats::Json;
using formats::quote;

namespace {

/// The current tensor of a writer.
class WriterSink : public formats::PayloadSink {
public:
  explicit WriterSink(CmfStreamWriter& writer) : writer_(writer) {}
  Status write_at(uint64_t offset, std::span<const uint8_t> bytes) override { return writer_.write_at(offset, bytes); }

private:
  CmfStreamWriter& writer_;
};

Json header_of(const SourceModel& model, const std::vector<Target>& targets, const QuantOptions& quant) {
  Json header = Json::object();
  header["arch"] = model.arch;
  header["quant_type"] = quant_type(targets);
  header["provenance"] = {{"tool", "cortiq-convert"}, {"source_format", model.format}};
  if (!model.name.empty())
    header["provenance"]["source_model"] = model.name;
  if (quant.quant)
    header["provenance"]["weight_quant"] = quant.quant->name;
  if (!model.tokenizer_config.is_null())
    header["tokenizer_config"] = model.tokenizer_config;
  return header;
}

Status write_tensor(const Target& target, CmfStreamWriter& writer, unsigned threads) {
  const TensorRows rows(*target.source);
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t least, target.codec->payload_bytes(*target.codec, rows.rows(), rows.cols()));
  CORTIQ_RETURN_IF_ERROR(writer.begin_tensor(least));
  WriterSink sink(writer);
  if (target.keeper)
    return target.keeper->write(rows, sink, threads);
  CORTIQ_RETURN_IF_ERROR(target.encoder->encode(rows, sink, {.threads = threads}));
  if (rows.met_nonfinite() && !target.lossless)
    return unsupported("has a value that is not finite, which " + std::string(target.codec->name) +
                       " cannot hold; choose f32 for it with --tensor-quant");
  return {};
}

Status write_tensors(const std::vector<Target>& targets, CmfStreamWriter& writer, const ConvertOptions& options) {
  double total = 0, done = 0;
  for (const Target& target : targets)
    total += static_cast<double>(target.source->tensor->data.size());
  for (const Target& target : targets) {
    CORTIQ_RETURN_IF_ERROR(
        write_tensor(target, writer, options.threads).with_prefix("tensor " + quote(target.source->name)));
    formats::release_pages(target.source->tensor->data);
    done += static_cast<double>(target.source->tensor->data.size());
    options.progress("writing", done / total);
  }
  return {};
}

StatusOr<ConvertSummary> convert_model(SourceModel model, const ConvertOptions& options) {
  ConvertSummary summary;
  summary.format = model.format;
  summary.bytes_in = model.bytes;
  summary.warnings = std::move(model.warnings);
  StatusOr<std::vector<Target>> targets = plan_targets(model, options.quant, options.threads, summary.warnings);
  CORTIQ_RETURN_IF_ERROR(targets.status().with_prefix(quote(options.input)));
  std::vector<formats::CmfStreamTensor> tensors;
  for (const Target& target : *targets)
    tensors.push_back({target.source->name, target.codec->cmf_code, target.source->shape});
  CORTIQ_ASSIGN_OR_RETURN(CmfStreamWriter writer,
                          CmfStreamWriter::create(options.output, header_of(model, *targets, options.quant),
                                                  std::move(tensors), std::move(model.tokenizer_json)));
  CORTIQ_RETURN_IF_ERROR(write_tensors(*targets, writer, options).with_prefix(quote(options.input)));
  CORTIQ_RETURN_IF_ERROR(writer.finish());
  CORTIQ_ASSIGN_OR_RETURN(summary.tensors, verify_output(writer.temporary_path(), *targets, options.threads,
                                                         [&](double done) { options.progress("verifying", done); }));
  summary.bytes_out = writer.size();
  CORTIQ_RETURN_IF_ERROR(writer.commit());
  return summary;
}

} // namespace

StatusOr<ConvertSummary> convert(const ConvertOptions& options) {
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(options.input, options.output));
  std::error_code error;
  if (std::filesystem::is_directory(options.input, error)) {
    CORTIQ_ASSIGN_OR_RETURN(const formats::SafetensorsFolder weights, formats::SafetensorsFolder::open(options.input));
    CORTIQ_ASSIGN_OR_RETURN(SourceModel model, read_hf_model(options.input, weights));
    return convert_model(std::move(model), options);
  }
  CORTIQ_ASSIGN_OR_RETURN(const formats::FileKind kind, formats::detect_file_kind(options.input));
  if (kind != formats::FileKind::kGguf)
    return unsupported(quote(options.input) + " is " +
                       (kind == formats::FileKind::kCmf ? "a CMF file already" : "a compiled artifact") +
                       "; give a GGUF file or a checkpoint folder");
  CORTIQ_ASSIGN_OR_RETURN(const formats::GgufFile file, formats::GgufFile::open(options.input));
  CORTIQ_ASSIGN_OR_RETURN(SourceModel model, read_gguf_model(file));
  return convert_model(std::move(model), options);
}

} // namespace cortiq::convert
