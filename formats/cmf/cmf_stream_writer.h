#pragma once

// Writes CMF v2 files whose payloads never are in memory together: tensor after tensor, each in pieces.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/atomic_file.h"
#include "formats/json.h"
#include "formats/status.h"

namespace cortiq::formats {

/// One tensor of a file to be written; `dtype` is the directory's code.
struct CmfStreamTensor {
  std::string name;
  int dtype = 0;
  std::vector<uint64_t> shape;
};

/// One file under its temporary name. Directory and header are placed first, because their sizes are known as soon as
/// the names are; payloads follow in the order of `tensors`; finish() fills in what only the payloads tell.
class CmfStreamWriter {
public:
  /// `header` needs arch and quant_type; format, version and section_hashes are filled in. `vocab` is the tokenizer
  /// section, empty = absent. Fails for a header or names that the reader would refuse.
  static StatusOr<CmfStreamWriter> create(const std::string& path, Json header, std::vector<CmfStreamTensor> tensors,
                                          std::vector<uint8_t> vocab);
  CmfStreamWriter(CmfStreamWriter&&) noexcept;
  CmfStreamWriter& operator=(CmfStreamWriter&&) noexcept;
  ~CmfStreamWriter();

  /// Ends the tensor begun before and begins the next one. Payloads that will have kCmfLargePayload bytes or more, by
  /// `size_hint`, are placed at whole pages.
  Status begin_tensor(uint64_t size_hint);
  /// Puts bytes of the current tensor at `offset` from its payload's start; gaps are zero.
  Status write_at(uint64_t offset, std::span<const uint8_t> bytes);

  /// Hashes the payloads and writes directory, sections and envelope. The whole file is then there to be opened under
  /// temporary_path(). Without `hash_payloads` the directory states no hashes of tensors.
  Status finish(bool hash_payloads = true);
  const std::string& temporary_path() const { return file_.temporary_path(); }
  /// Bytes written so far.
  uint64_t size() const { return file_.size(); }
  /// Gives the file its name.
  Status commit() { return file_.commit(); }

private:
  struct Extent {
    uint64_t offset = 0; ///< from the start of the file
    uint64_t size = 0;
  };
  explicit CmfStreamWriter(AtomicFile file);
  std::vector<uint8_t> directory(std::span<const uint8_t> file, bool hash_payloads) const;

  AtomicFile file_;
  std::string header_;
  std::vector<CmfStreamTensor> tensors_;
  std::vector<uint8_t> vocab_;
  std::vector<Extent> extents_; ///< of the tensors begun
  uint64_t directory_size_ = 0;
  uint64_t data_offset_ = 0;
};

} // namespace cortiq::formats
