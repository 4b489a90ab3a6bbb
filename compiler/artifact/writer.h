#pragma once

// Writes an artifact (`.cqa`): one file that is also a valid ELF64 shared object (formats/artifact/artifact_file.h has
// its outer form). Nothing here knows of MLIR.
//
// Two steps, because kernel offsets are part of the program: placeKernels() fixes where every kernel will stand;
// with that the program is finished (setKernelOffsets() does it for the object API) and writeArtifact() writes all.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "formats/status.h"

namespace cortiq::compiler {

/// One generated kernel. `code` is position independent, starts with `push rbp; mov rbp, rsp` (x86) and may have its
/// constants behind its instructions.
struct KernelCode {
  std::string name; ///< the symbol; unique, not empty, without zero bytes
  std::vector<uint8_t> code;
  /// Where its constants begin, so that tools show them as data; 0: it has none.
  uint64_t constantsOffset = 0;
};

/// Where kernels will stand in the file. Kernels of equal bytes (those that two targets have in common) share a place,
/// which then has several names.
struct KernelPlacement {
  struct Entry {
    uint64_t offset; ///< from the start of the file, a multiple of 64
    uint64_t bytes;
  };
  std::vector<Entry> kernels; ///< in the order given
};

/// Machine of the code, as ELF numbers it.
inline constexpr uint32_t kMachineX86_64 = 62;
inline constexpr uint32_t kMachineAArch64 = 183;

/// Fails for an empty, doubled or overlong name, for empty code and for an unknown machine.
StatusOr<KernelPlacement> placeKernels(std::span<const KernelCode> kernels, uint32_t machine = kMachineX86_64);

/// Sets offset and bytes of every kernel of `program` from the kernel of the same name; fails when there is none.
Status setKernelOffsets(artifact::ProgramT& program, std::span<const KernelCode> kernels,
                        const KernelPlacement& placement);

/// `program` as the bytes of the program section.
std::vector<uint8_t> serializeProgram(const artifact::ProgramT& program);

/// Fills the packed bytes of manifest.weights[index]; `out` has exactly its size and is zero. Called from several
/// threads at once, in any order, once a weight.
using WeightFiller = std::function<Status(size_t index, std::span<uint8_t> out)>;

struct ArtifactContents {
  uint32_t machine = kMachineX86_64;
  std::vector<KernelCode> kernels;
  /// Everything but weight offsets and weight hashes, which the writer sets. With weights_embedded false no weights are
  /// written, but their offsets are set all the same.
  artifact::ManifestT manifest;
  std::vector<uint8_t> program;   ///< finished FlatBuffers, see serializeProgram(), where manifest.targets says
  std::vector<uint8_t> tokenizer; ///< may be empty
  std::string provenance;         ///< JSON; no times, no folders
  WeightFiller weights;           ///< needed when weights_embedded and the table is not empty
};

struct WriteOptions {
  unsigned threads = 1;
  /// Called with the temporary file's path before it gets its name; a failure leaves nothing. The tools pass the
  /// runtime's loader here.
  std::function<Status(const std::string& path)> verify = nullptr;
  /// Called after each finished weight, from any worker but never at the same time twice.
  std::function<void(uint64_t bytesDone, uint64_t bytesTotal)> progress = nullptr;
};

/// Writes the artifact under a temporary name beside `path`, flushes, verifies and renames it. Any failure leaves
/// nothing. The same contents give the same bytes, whatever the number of threads.
Status writeArtifact(const std::string& path, ArtifactContents contents, const WriteOptions& options = {});

} // namespace cortiq::compiler
