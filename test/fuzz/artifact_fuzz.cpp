// An artifact: load it as it is, and once more with its hashes made right, so that the checks behind them are reached.
// Nothing of it is executed: code that passed its hash is trusted by design.

#include <cstddef>
#include <cstring>
#include <vector>

#include "formats/artifact/artifact_file.h"
#include "formats/artifact/artifact_hash.h"
#include "runtime/loader/load.h"
#include "test/fuzz/memory_file.h"

using namespace cortiq;
using formats::ArtifactHeader;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size); // libFuzzer's own

namespace {

void load(std::span<const uint8_t> bytes, bool verify_weights) {
  const fuzz::MemoryFile input(bytes);
  runtime::ArtifactLoadOptions options;
  options.check_features = false;
  options.verify_weights = verify_weights;
  options.fill_seed = 1;
  const Status status = runtime::check_artifact(input.path(), options); // each of its targets
  if (status.ok())
    return;
  fuzz::require(status.code() != StatusCode::kInternal, "a refusal that blames the program");
  fuzz::require(status.message().find('\n') == std::string::npos, "a refusal of several lines");
}

void store(std::vector<uint8_t>& bytes, size_t field, const formats::Hash256& hash) {
  std::memcpy(bytes.data() + formats::kHeaderOffset + field, hash.data(), hash.size());
}

/// Where the weights begin; 0 if the header does not say so.
size_t weights_offset(std::span<const uint8_t> bytes) {
  ArtifactHeader header;
  if (bytes.size() < formats::kArtifactPage)
    return 0;
  std::memcpy(&header, bytes.data() + formats::kHeaderOffset, sizeof(header));
  const uint64_t end = header.sections[static_cast<uint32_t>(formats::ArtifactSection::kWeights)].offset;
  return end < formats::kArtifactPage || end > bytes.size() ? 0 : end;
}

/// Sets both hashes of the header to what the bytes give; false if the header leaves no room for that.
bool rehash(std::vector<uint8_t>& bytes) {
  const size_t end = weights_offset(bytes);
  if (end == 0)
    return false;
  store(bytes, offsetof(ArtifactHeader, image_hash),
        formats::hash256(std::span(bytes).subspan(formats::kArtifactPage, end - formats::kArtifactPage)));
  store(bytes, offsetof(ArtifactHeader, header_hash),
        formats::header_page_hash(std::span(bytes).first(formats::kArtifactPage)));
  return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  load({data, size}, /*verify_weights=*/true);
  std::vector<uint8_t> repaired(data, data + size);
  if (rehash(repaired))
    load(repaired, /*verify_weights=*/false);
  return 0;
}

/// Nine tenths of a file are weights, whose values mean nothing to the loader: most changes go to what stands before.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  const size_t end = weights_offset({data, size});
  if (end == 0 || seed % 8 == 0)
    return LLVMFuzzerMutate(data, size, max_size);
  // The size stays: every section keeps its place, and a shortened image keeps its old end.
  const size_t begin = seed % 8 == 1 ? formats::kHeaderOffset : formats::kArtifactPage;
  std::vector<uint8_t> image(data + begin, data + end);
  LLVMFuzzerMutate(image.data(), image.size(), image.size());
  std::memcpy(data + begin, image.data(), image.size());
  return size;
}
