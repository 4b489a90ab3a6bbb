#pragma once

// The bytes of an artifact in memory, after every check that needs no understanding of the program: form, extents,
// hashes. Hashes are taken over the bytes that were mapped.

#include <cstdint>
#include <span>
#include <string>

#include "formats/artifact/artifact_file.h"
#include "formats/artifact/artifact_hash.h"
#include "formats/status.h"

namespace cortiq::runtime {

class MappedArtifact {
public:
  /// Maps `path` (code read and execute, everything else read only) and checks header, extents and hashes of all but
  /// the weights. `sealed`: what is checked is a copy, of all but the weights, that nobody can change any more,
  /// whatever becomes of the file.
  static StatusOr<MappedArtifact> open(const std::string& path, bool sealed = false);

  /// Fails when the code is for another machine than this one.
  Status check_machine() const;

  MappedArtifact(MappedArtifact&& other) noexcept;
  MappedArtifact& operator=(MappedArtifact&& other) noexcept;
  ~MappedArtifact();

  const formats::ArtifactHeader& header() const { return header_; }
  /// The hash of the header page, which was found right: what a signature is over.
  formats::Hash256 root() const;
  std::span<const uint8_t> section(formats::ArtifactSection section) const;
  /// The whole file, for reading.
  std::span<const uint8_t> file() const { return {base_, bytes_}; }
  /// Executable address of a file offset inside the code section.
  const uint8_t* code_at(uint64_t file_offset) const;

private:
  MappedArtifact() = default;
  Status check(const std::string& path) const;
  Status seal(int& memory);
  Status map_code(int fd);
  void unmap();

  formats::ArtifactHeader header_{};
  uint8_t* base_ = nullptr;
  uint64_t bytes_ = 0;
  uint8_t* code_ = nullptr; ///< mapping of the pages that hold the code section
  uint64_t code_bytes_ = 0;
  uint64_t code_begin_ = 0; ///< file offset of code_
};

} // namespace cortiq::runtime
