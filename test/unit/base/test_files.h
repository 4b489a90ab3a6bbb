#pragma once

// Files that unit tests read and write: the fixture folder, and a scratch folder a test.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace cortiq::test {

/// The folder that CORTIQ_FIXTURES names; empty when it is unset.
inline std::string fixtures() {
  const char* folder = std::getenv("CORTIQ_FIXTURES");
  return folder == nullptr ? "" : folder;
}

#define CORTIQ_NEED_FIXTURES()                                                                                         \
  if (::cortiq::test::fixtures().empty())                                                                              \
  GTEST_SKIP() << "CORTIQ_FIXTURES is not set: it names the folder with the model fixtures"

/// A folder that exists while the object lives.
class ScratchFolder {
public:
  ScratchFolder() {
    path_ = (std::filesystem::temp_directory_path() / "cortiq-test-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr)
      ADD_FAILURE() << "no scratch folder at " << path_;
  }
  ~ScratchFolder() { std::filesystem::remove_all(path_); }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

inline std::vector<uint8_t> read_bytes(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

inline void write_bytes(const std::string& path, std::span<const uint8_t> bytes) {
  std::ofstream stream(path, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

inline std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

/// Files in `folder` whose names end in `extension`, sorted.
inline std::vector<std::string> files_in(const std::string& folder, const std::string& extension) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == extension)
      out.push_back(entry.path().string());
  std::sort(out.begin(), out.end());
  return out;
}

/// True when `message` fits one line of a terminal log: not empty, no line break.
inline bool is_one_sentence(const std::string& message) {
  return !message.empty() && message.find('\n') == std::string::npos;
}

} // namespace cortiq::test
