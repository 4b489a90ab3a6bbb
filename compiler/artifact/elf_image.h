#pragma once

// The ELF form of an artifact: where every part stands, and the bytes of the parts that ELF itself needs. Addresses
// equal file offsets, so that a kernel's offset is also its address in a tool's listing.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "compiler/artifact/writer.h"
#include "formats/artifact/artifact_file.h"

namespace cortiq::compiler {

/// Offsets of everything that depends on the kernels only.
struct CodeLayout {
  uint64_t hash, dynsym, dynstr, ehFrameHdr, ehFrame, readOnlyEnd;
  uint64_t text, textEnd;
  uint32_t localSymbols = 0; ///< of constants, before the kernels' own in .dynsym
  uint64_t dynamic, dynamicEnd;
  KernelPlacement placement;
  std::vector<size_t> original;               ///< for each kernel the first one of the same bytes, itself mostly
  std::vector<KernelPlacement::Entry> places; ///< those of `placement`, each once, ascending
};

/// Sections after the loadable part; offsets are assigned by layoutImage().
struct ImageLayout {
  CodeLayout code;
  formats::ArtifactExtent sections[static_cast<uint32_t>(formats::ArtifactSection::kCount)];
  uint64_t sectionNames, sectionHeaders;
  uint64_t weights; ///< page aligned end of the image, start of the weights
  uint64_t fileBytes;
};

/// Bytes of the sections that the caller supplies.
struct SectionSizes {
  uint64_t manifest, program, tokenizer, provenance, weights;
};

/// Fails as placeKernels() does.
StatusOr<CodeLayout> layoutCode(std::span<const KernelCode> kernels, uint32_t machine);

ImageLayout layoutImage(CodeLayout code, const SectionSizes& sizes);

/// The bytes [0, layout.weights) with the loadable part, ELF header, program and section headers in place; the
/// sections' own content and the ArtifactHeader are left zero.
std::vector<uint8_t> buildImage(const ImageLayout& layout, std::span<const KernelCode> kernels, uint32_t machine);

} // namespace cortiq::compiler
