#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace cortiq::codegen::x86 {

/// The constants behind a kernel's code, each once, aligned to its size.
class ConstantPool {
public:
  /// The number of the constant with these bytes.
  int32_t add(const std::vector<uint8_t>& bytes) {
    const auto [it, is_new] = numbers_.try_emplace(bytes, static_cast<int32_t>(constants_.size()));
    if (is_new)
      constants_.push_back(bytes);
    return it->second;
  }

  const std::vector<uint8_t>& bytes(int32_t number) const { return constants_[number]; }
  bool is_zero(int32_t number) const {
    for (uint8_t byte : constants_[number])
      if (byte != 0)
        return false;
    return true;
  }

private:
  std::vector<std::vector<uint8_t>> constants_;
  std::map<std::vector<uint8_t>, int32_t> numbers_;
};

} // namespace cortiq::codegen::x86
