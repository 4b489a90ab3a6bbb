#include "compiler/artifact/writer.h"

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <sys/mman.h>
#include <thread>

#include "compiler/artifact/elf_image.h"
#include "compiler/artifact/output_file.h"
#include "formats/artifact/artifact_hash.h"
#include "formats/checked_math.h"
#include "formats/quote.h"

namespace cortiq::compiler {
namespace {

using formats::ArtifactHeader;
using formats::ArtifactSection;
using formats::Hash256;
using formats::kWeightLeafBytes;

constexpr uint64_t kWeightAlignment = 64;
constexpr uint64_t kWeightPadding = 64; // readable bytes behind a weight

/// Sets the offset of every weight and returns the size of the section.
StatusOr<uint64_t> placeWeights(artifact::ManifestT& manifest) {
  std::optional<uint64_t> end = 0;
  for (auto& weight : manifest.weights) {
    weight->offset = *end;
    end = formats::checked_round_up(
        formats::checked_add(formats::checked_add(*end, weight->bytes), kWeightPadding).value_or(UINT64_MAX),
        kWeightAlignment);
    if (!end || *end > INT64_MAX)
      return internal_error("the weights exceed 2^63 bytes at " + formats::quote(weight->name));
  }
  return *end;
}

std::vector<uint8_t> serializeManifest(const artifact::ManifestT& manifest) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(artifact::Manifest::Pack(builder, &manifest));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

/// Fills the weights section in place, several weights at once, and hashes each leaf as soon as the last weight that
/// reaches into it is complete: no byte is read from the device again.
class WeightStream {
public:
  WeightStream(const ArtifactContents& contents, const WriteOptions& options, std::span<uint8_t> section)
      : weights_(contents.manifest.weights), fill_(contents.weights), options_(options), section_(section),
        hashes_(formats::ceil_div(section.size(), kWeightLeafBytes) * sizeof(Hash256)),
        pending_(new std::atomic<uint32_t>[hashes_.size() / sizeof(Hash256)]()) {
    for (const auto& weight : weights_)
      for (uint64_t leaf = firstLeaf(*weight); leaf <= lastLeaf(*weight); ++leaf)
        pending_[leaf].fetch_add(1, std::memory_order_relaxed);
  }

  Status run() {
    std::vector<std::thread> others;
    for (unsigned i = 1; i < options_.threads && i < weights_.size(); ++i)
      others.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : others)
      thread.join();
    return failure_;
  }

  std::vector<uint8_t> takeHashes() { return std::move(hashes_); }

private:
  static uint64_t firstLeaf(const artifact::WeightT& weight) { return weight.offset / kWeightLeafBytes; }
  // The padding counts as part of its weight, so that no leaf is without one.
  static uint64_t lastLeaf(const artifact::WeightT& weight) {
    return (weight.offset + formats::checked_round_up(weight.bytes + kWeightPadding, kWeightAlignment).value() - 1) /
           kWeightLeafBytes;
  }

  void work() {
    for (size_t i; !stop_.load(std::memory_order_relaxed) && (i = cursor_.fetch_add(1)) < weights_.size();) {
      const artifact::WeightT& weight = *weights_[i];
      Status status = fill_(i, section_.subspan(weight.offset, weight.bytes));
      if (status.ok())
        finish(weight);
      std::lock_guard lock(mutex_);
      done_ += weight.bytes;
      if (!status.ok() && failure_.ok()) {
        failure_ = status.with_prefix("weight " + formats::quote(weight.name));
        stop_.store(true, std::memory_order_relaxed);
      } else if (status.ok() && options_.progress) {
        options_.progress(done_, section_.size());
      }
    }
  }

  void finish(const artifact::WeightT& weight) {
    for (uint64_t leaf = firstLeaf(weight); leaf <= lastLeaf(weight); ++leaf) {
      if (pending_[leaf].fetch_sub(1, std::memory_order_acq_rel) != 1)
        continue;
      const uint64_t begin = leaf * kWeightLeafBytes;
      const auto bytes = section_.subspan(begin, std::min(kWeightLeafBytes, section_.size() - begin));
      const Hash256 hash = formats::hash256(bytes);
      std::memcpy(hashes_.data() + leaf * hash.size(), hash.data(), hash.size());
      // The pages stay in the file; only this process lets go of them.
      madvise(section_.data() + begin, bytes.size(), MADV_DONTNEED);
    }
  }

  const std::vector<std::unique_ptr<artifact::WeightT>>& weights_;
  const WeightFiller& fill_;
  const WriteOptions& options_;
  std::span<uint8_t> section_;
  std::vector<uint8_t> hashes_;
  std::unique_ptr<std::atomic<uint32_t>[]> pending_; // weights that a leaf still waits for
  std::atomic<size_t> cursor_{0};
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  uint64_t done_ = 0;
  Status failure_;
};

void putSection(std::vector<uint8_t>& image, const ImageLayout& layout, ArtifactSection section,
                std::span<const uint8_t> bytes) {
  const formats::ArtifactExtent extent = layout.sections[static_cast<uint32_t>(section)];
  assert(extent.bytes == bytes.size());
  if (!bytes.empty())
    std::memcpy(image.data() + extent.offset, bytes.data(), bytes.size());
}

void putHeader(std::vector<uint8_t>& image, const ImageLayout& layout, uint32_t machine) {
  ArtifactHeader header{};
  std::memcpy(header.magic, formats::kArtifactMagic, sizeof(header.magic));
  header.schema_version = formats::kArtifactSchemaVersion;
  header.machine = machine;
  header.file_bytes = layout.fileBytes;
  std::memcpy(header.sections, layout.sections, sizeof(header.sections));
  const Hash256 imageHash = formats::hash256(std::span(image).subspan(formats::kArtifactPage));
  std::memcpy(header.image_hash, imageHash.data(), imageHash.size());
  std::memcpy(image.data() + formats::kHeaderOffset, &header, sizeof(header));
  const Hash256 headerHash = formats::header_page_hash(std::span(image).first(formats::kArtifactPage));
  std::memcpy(image.data() + formats::kHeaderOffset + offsetof(ArtifactHeader, header_hash), headerHash.data(),
              headerHash.size());
}

} // namespace

StatusOr<KernelPlacement> placeKernels(std::span<const KernelCode> kernels, uint32_t machine) {
  StatusOr<CodeLayout> layout = layoutCode(kernels, machine);
  if (!layout.ok())
    return layout.status();
  return std::move(layout->placement);
}

Status setKernelOffsets(artifact::ProgramT& program, std::span<const KernelCode> kernels,
                        const KernelPlacement& placement) {
  assert(kernels.size() == placement.kernels.size());
  std::map<std::string_view, KernelPlacement::Entry> places;
  for (size_t i = 0; i < kernels.size(); ++i)
    places[kernels[i].name] = placement.kernels[i];
  for (auto& kernel : program.kernels) {
    const auto place = places.find(kernel->name);
    if (place == places.end())
      return internal_error("the program calls kernel " + formats::quote(kernel->name) + ", which has no code");
    kernel->offset = place->second.offset;
    kernel->bytes = place->second.bytes;
  }
  return {};
}

std::vector<uint8_t> serializeProgram(const artifact::ProgramT& program) {
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(artifact::Program::Pack(builder, &program));
  return {builder.GetBufferPointer(), builder.GetBufferPointer() + builder.GetSize()};
}

Status writeArtifact(const std::string& path, ArtifactContents contents, const WriteOptions& options) {
  artifact::ManifestT& manifest = contents.manifest;
  StatusOr<uint64_t> weightBytes = placeWeights(manifest);
  if (!weightBytes.ok())
    return weightBytes.status();
  const uint64_t embedded = manifest.weights_embedded ? *weightBytes : 0;
  if (embedded != 0 && !contents.weights)
    return internal_error("the artifact has weights but nothing that fills them");
  StatusOr<CodeLayout> code = layoutCode(contents.kernels, contents.machine);
  if (!code.ok())
    return code.status();

  // The manifest stands before the weights and holds their hashes: its size is known before its content.
  manifest.weights_leaves.assign(formats::ceil_div(embedded, kWeightLeafBytes) * sizeof(Hash256), 0);
  manifest.weights_root.assign(embedded != 0 ? sizeof(Hash256) : 0, 0);
  std::vector<uint8_t> manifestBytes = serializeManifest(manifest);
  const ImageLayout layout =
      layoutImage(std::move(*code), {manifestBytes.size(), contents.program.size(), contents.tokenizer.size(),
                                     contents.provenance.size(), embedded});

  StatusOr<OutputFile> file = OutputFile::create(path, layout.fileBytes);
  if (!file.ok())
    return file.status();
  if (embedded != 0) {
    StatusOr<std::span<uint8_t>> section = file->map(layout.weights, embedded);
    if (!section.ok())
      return section.status();
    WeightStream stream(contents, options, *section);
    CORTIQ_RETURN_IF_ERROR(stream.run());
    manifest.weights_leaves = stream.takeHashes();
    const Hash256 root = formats::hash256(manifest.weights_leaves);
    manifest.weights_root.assign(root.begin(), root.end());
    manifestBytes = serializeManifest(manifest);
  }

  std::vector<uint8_t> image = buildImage(layout, contents.kernels, contents.machine);
  putSection(image, layout, ArtifactSection::kManifest, manifestBytes);
  putSection(image, layout, ArtifactSection::kProgram, contents.program);
  putSection(image, layout, ArtifactSection::kTokenizer, contents.tokenizer);
  putSection(image, layout, ArtifactSection::kProvenance,
             {reinterpret_cast<const uint8_t*>(contents.provenance.data()), contents.provenance.size()});
  putHeader(image, layout, contents.machine);
  CORTIQ_RETURN_IF_ERROR(file->writeAt(0, image));
  CORTIQ_RETURN_IF_ERROR(file->flush());
  if (options.verify)
    CORTIQ_RETURN_IF_ERROR(options.verify(file->readablePath()).with_prefix("the finished artifact was refused"));
  return file->commit();
}

} // namespace cortiq::compiler
