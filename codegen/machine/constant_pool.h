#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

namespace cortiq::codegen {

/// The constants behind a kernel's code, each once: vectors, aligned to their size, and tables of any size.
class ConstantPool {
public:
  /// The number of the vector with these bytes, a power of two of them.
  int32_t add(const std::vector<uint8_t>& bytes) { return add(bytes, bytes.size()); }
  /// The number of the constant with these bytes, at a multiple of `alignment`, a power of two up to 64.
  int32_t add(const std::vector<uint8_t>& bytes, size_t alignment) {
    const auto [it, is_new] = numbers_.try_emplace(bytes, static_cast<int32_t>(constants_.size()));
    if (is_new) {
      constants_.push_back(bytes);
      alignments_.push_back(alignment);
    }
    size_t& needed = alignments_[it->second];
    needed = std::max(needed, alignment);
    return it->second;
  }

  int32_t size() const { return static_cast<int32_t>(constants_.size()); }
  const std::vector<uint8_t>& bytes(int32_t number) const { return constants_[number]; }
  size_t alignment(int32_t number) const { return alignments_[number]; }
  bool is_zero(int32_t number) const {
    for (uint8_t byte : constants_[number])
      if (byte != 0)
        return false;
    return true;
  }

private:
  std::vector<std::vector<uint8_t>> constants_;
  std::vector<size_t> alignments_;
  std::map<std::vector<uint8_t>, int32_t> numbers_;
};

} // namespace cortiq::codegen
