#include "tools/cortiq-convert/convert.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unistd.h>

#include "formats/atomic_file.h"
#include "formats/cmf/cmf_stream_writer.h"
#include "formats/file_kind.h"
#include "formats/gguf/gguf_file.h"
#include "formats/input_files.h"
#include "formats/page_release.h"
#include "formats/quote.h"
#include "formats/safetensors/safetensors_file.h"
#include "tools/cortiq-convert/gguf_source.h"
#include "tools/cortiq-convert/hf_source.h"
#include "tools/cortiq-convert/shards.h"
#include "tools/cortiq-convert/tensor_rows.h"
#include "tools/cortiq-convert/verify.h"

namespace cortiq::convert {

using formats::CmfStreamWriter;
using formats::Json;
using formats::quote;
using formats::Tensor;

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

/// Writes the files of one result.
class ResultWriter {
public:
  ResultWriter(const SourceModel& model, const ConvertOptions& options, const std::vector<Target>& targets,
               ConvertSummary& summary)
      : model_(model), options_(options), targets_(targets), summary_(summary),
        header_(header_of(model, targets, options.quant)) {
    for (const Target& target : targets)
      total_ += static_cast<double>(target.source->tensor->data.size());
  }

  Status write() {
    CORTIQ_ASSIGN_OR_RETURN(const std::vector<std::vector<Target>> shards, divide(targets_, options_.shard_size));
    return shards.size() == 1 ? write_one() : write_shards(shards);
  }

private:
  Status write_one() {
    CORTIQ_ASSIGN_OR_RETURN(CmfStreamWriter writer, start(options_.output, targets_, /*first=*/true));
    CORTIQ_RETURN_IF_ERROR(fill(writer, targets_));
    CORTIQ_RETURN_IF_ERROR(verify(writer.temporary_path()));
    CORTIQ_RETURN_IF_ERROR(writer.commit());
    remove_signature(options_.output);
    return {};
  }

  Status write_shards(const std::vector<std::vector<Target>>& shards) {
    CORTIQ_ASSIGN_OR_RETURN(ShardFiles files, ShardFiles::create(options_.output, shards.size()));
    for (size_t i = 0; i < shards.size(); ++i) {
      header_["shard"] = {{"no", i + 1}, {"count", shards.size()}};
      CORTIQ_ASSIGN_OR_RETURN(CmfStreamWriter writer, start(files.path(i), shards[i], i == 0));
      CORTIQ_RETURN_IF_ERROR(fill(writer, shards[i]));
      CORTIQ_RETURN_IF_ERROR(writer.commit());
      files.written(i);
    }
    CORTIQ_RETURN_IF_ERROR(verify(files.path(0)));
    summary_.shards = shards.size();
    CORTIQ_RETURN_IF_ERROR(files.publish());
    for (size_t i = 0; i < shards.size(); ++i)
      remove_signature(files.destination(i));
    return {};
  }

  /// The signature of a file that was replaced does not hold for the new one.
  void remove_signature(const std::string& path) {
    const std::string signature = path + ".sig";
    if (unlink(signature.c_str()) == 0)
      summary_.warnings.push_back(quote(signature) + " was removed: it signed the file that was replaced");
    else if (errno != ENOENT)
      summary_.warnings.push_back(quote(signature) +
                                  " does not belong to the new file and cannot be removed: " + std::strerror(errno));
  }

  /// The first file, or the only one, has the text side too.
  StatusOr<CmfStreamWriter> start(const std::string& path, const std::vector<Target>& targets, bool first) const {
    std::vector<formats::CmfStreamTensor> tensors;
    for (const Target& target : targets)
      tensors.push_back({target.source->name, target.codec->cmf_code, target.source->shape});
    Json header = header_;
    if (first && !model_.tokenizer_config.is_null())
      header["tokenizer_config"] = model_.tokenizer_config;
    return CmfStreamWriter::create(path, std::move(header), std::move(tensors),
                                   first ? model_.tokenizer_json : std::vector<uint8_t>());
  }

  Status fill(CmfStreamWriter& writer, const std::vector<Target>& targets) {
    for (const Target& target : targets) {
      const Tensor& from = *target.source->tensor;
      CORTIQ_RETURN_IF_ERROR(write_tensor(target, writer, options_.threads)
                                 .with_prefix("tensor " + quote(target.source->name))
                                 .with_prefix(quote(options_.input)));
      formats::release_pages(from.data);
      done_ += static_cast<double>(from.data.size());
      options_.progress("writing", done_ / total_);
    }
    CORTIQ_RETURN_IF_ERROR(writer.finish());
    summary_.bytes_out += writer.size();
    return {};
  }

  Status verify(const std::string& path) {
    CORTIQ_ASSIGN_OR_RETURN(summary_.tensors, verify_output(path, targets_, options_.threads, [&](double done) {
                              options_.progress("verifying", done);
                            }));
    return {};
  }

  const SourceModel& model_;
  const ConvertOptions& options_;
  const std::vector<Target>& targets_;
  ConvertSummary& summary_;
  Json header_;
  double total_ = 0, done_ = 0;
};

/// Endings that say another format than the one that is written.
Status check_ending(const std::string& output) {
  for (const std::string_view ending : {".cqa", ".gguf", ".json", ".safetensors"})
    if (output.ends_with(ending))
      return invalid(quote(output) + " ends in " + std::string(ending) +
                     ", but the result is a CMF file; choose a name that ends in .cmf");
  return {};
}

/// Everything in a checkpoint's folder belongs to the checkpoint, but what an earlier conversion put there.
void remember_folder(const std::string& folder) {
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() != ".cmf")
      formats::remember_input(it->path().string());
}

StatusOr<ConvertSummary> convert_model(SourceModel model, const ConvertOptions& options) {
  CORTIQ_RETURN_IF_ERROR(formats::check_output(options.output));
  ConvertSummary summary;
  summary.format = model.format;
  summary.bytes_in = model.bytes;
  summary.warnings = std::move(model.warnings);
  StatusOr<std::vector<Target>> targets = plan_targets(model, options.quant, options.threads, summary.warnings);
  CORTIQ_RETURN_IF_ERROR(targets.status().with_prefix(quote(options.input)));
  CORTIQ_RETURN_IF_ERROR(ResultWriter(model, options, *targets, summary).write());
  return summary;
}

} // namespace

StatusOr<ConvertSummary> convert(const ConvertOptions& options) {
  CORTIQ_RETURN_IF_ERROR(formats::check_not_input(options.input, options.output));
  CORTIQ_RETURN_IF_ERROR(check_ending(options.output));
  std::error_code error;
  if (std::filesystem::is_directory(options.input, error)) {
    remember_folder(options.input);
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
