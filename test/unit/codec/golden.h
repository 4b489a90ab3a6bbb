#pragma once

// The golden codec vectors: a manifest, and files beside it.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace cortiq::formats {

struct Golden {
  std::string folder;
  nlohmann::json manifest;

  std::vector<uint8_t> bytes(const std::string& file) const {
    std::ifstream stream(folder + "/" + file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }

  template <class T>
  std::vector<T> words(const std::string& file) const {
    const std::vector<uint8_t> raw = bytes(file);
    std::vector<T> out(raw.size() / sizeof(T));
    std::memcpy(out.data(), raw.data(), out.size() * sizeof(T));
    return out;
  }
};

/// The vectors below the folder that CORTIQ_FIXTURES names; an empty folder name when there are none.
inline Golden open_golden() {
  Golden golden;
  const char* fixtures = std::getenv("CORTIQ_FIXTURES");
  if (!fixtures || !*fixtures)
    return golden;
  const std::string folder = std::string(fixtures) + "/golden/codecs";
  std::ifstream stream(folder + "/manifest.json");
  if (!stream)
    return golden;
  golden.manifest = nlohmann::json::parse(stream, nullptr, /*allow_exceptions=*/false);
  golden.folder = folder;
  return golden;
}

} // namespace cortiq::formats

/// Declares `name`, or skips the test where the vectors are missing.
#define CORTIQ_GOLDEN_OR_SKIP(name)                                                                                    \
  const ::cortiq::formats::Golden name = ::cortiq::formats::open_golden();                                             \
  if (name.folder.empty())                                                                                             \
    GTEST_SKIP() << "CORTIQ_FIXTURES does not name a folder with golden/codecs/manifest.json";                         \
  ASSERT_FALSE(name.manifest.is_discarded()) << "golden/codecs/manifest.json is not JSON"
