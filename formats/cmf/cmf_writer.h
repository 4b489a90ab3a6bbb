#pragma once

// Writes CMF v2 files from scratch in the order of specification 1.1.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/cmf/cmf_envelope.h"
#include "formats/cmf/cmf_header.h"
#include "formats/json.h"
#include "formats/status.h"

namespace cortiq::formats {

/// Collects the content of one file, then writes it whole. Same content, same bytes.
class CmfWriter {
public:
  /// `header` needs arch and quant_type; format, version and section_hashes are filled in by write().
  explicit CmfWriter(Json header);
  ~CmfWriter();

  /// Adds a tensor; `payload` must stay valid until write() returns. `dtype` is the directory's code. What is wrong
  /// with a tensor is found by write().
  void add_tensor(std::string name, int dtype, std::vector<uint64_t> shape, std::span<const uint8_t> payload);
  /// Sections behind the data; each must stay valid until write() returns, empty = absent.
  void set_masks(std::span<const uint8_t> section) { masks_ = section; }
  void set_vocab(std::span<const uint8_t> section) { vocab_ = section; }

  /// Refuses what the reader would refuse, then writes to a temporary name and renames it to `path`.
  Status write(const std::string& path) const;

private:
  struct Entry {
    std::string name;
    int dtype;
    std::vector<uint64_t> shape;
    std::span<const uint8_t> payload;
  };

  Status check_entries() const;
  std::vector<uint8_t> directory(const std::vector<uint64_t>& offsets) const;
  std::string header_text() const;
  uint32_t features(const CmfHeader& header) const;
  Status write_sections(const std::string& path, const CmfEnvelope& envelope, const std::string& header,
                        std::span<const uint8_t> records, const std::vector<uint64_t>& offsets) const;

  std::unique_ptr<Json> header_;
  std::vector<Entry> entries_;
  std::span<const uint8_t> masks_, vocab_;
};

} // namespace cortiq::formats
