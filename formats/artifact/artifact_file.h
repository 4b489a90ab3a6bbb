#pragma once

// The outer form of an artifact (`.cqa`): one file that is also a valid ELF64 shared object.
//
//   page 0      ELF header, program headers, and at kHeaderOffset the ArtifactHeader below
//   image       everything from 4096 to the start of the weights: dynamic tables, unwind information, .text, manifest,
//               programs (one a target), tokenizer, provenance, section headers; one hash covers all of it
//   weights     last, page aligned; reached through the manifest's weight table; hashed in leaves of 4 MiB
//
// Our loader reads the ArtifactHeader and never calls dlopen. Every offset counts from the start of the file.

#include <cstdint>

namespace cortiq::formats {

inline constexpr uint64_t kArtifactPage = 4096;
inline constexpr uint64_t kHeaderOffset = 1024;
/// Goes up whenever an artifact of before would be read differently: its tables, its rows, or how layouts order bytes.
inline constexpr uint32_t kArtifactSchemaVersion = 2;
inline constexpr char kArtifactMagic[8] = {'C', 'O', 'R', 'T', 'I', 'Q', 'A', '\x01'};
inline constexpr uint64_t kProgramAlignment = 64; ///< of each program in its section
inline constexpr uint64_t kWeightLeafBytes = 4u << 20;

enum class ArtifactSection : uint32_t { kCode, kManifest, kProgram, kTokenizer, kProvenance, kWeights, kCount };

struct ArtifactExtent {
  uint64_t offset;
  uint64_t bytes;
};

/// At kHeaderOffset. `header_hash` is BLAKE2b-256 over bytes [0, 4096) of the file with this field zero; `image_hash`
/// over bytes [4096, weights offset).
struct ArtifactHeader {
  char magic[8];
  uint32_t schema_version;
  uint32_t machine; ///< ELF machine number of the code (EM_X86_64, EM_AARCH64)
  uint64_t file_bytes;
  ArtifactExtent sections[static_cast<uint32_t>(ArtifactSection::kCount)];
  uint8_t image_hash[32];
  uint8_t header_hash[32];
};

} // namespace cortiq::formats
