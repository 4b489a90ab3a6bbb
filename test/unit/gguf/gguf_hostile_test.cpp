// Files made to harm: every kind of lie about places, sizes and depth is refused in one sentence, whatever the
// fixtures.

#include <algorithm>
#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/gguf/gguf_file.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

constexpr size_t kTensorCount = 8, kEntryCount = 16; // of the file

struct Bytes {
  std::vector<uint8_t> file;

  Bytes() {
    file = GgufBuilder()
               .text("general.architecture", "llama")
               .texts("words", {"one", "two"})
               .array<uint32_t>("numbers", GgufType::kU32, {1, 2, 3})
               .tensor("first", {64}, 0, 256)
               .tensor("second", {8, 8}, 0, 256)
               .bytes();
  }

  /// Where the bytes of `text` begin; each stands once in the file.
  size_t at(std::string_view text) const {
    const auto found = std::search(file.begin(), file.end(), text.begin(), text.end());
    EXPECT_NE(found, file.end()) << text;
    return static_cast<size_t>(found - file.begin());
  }
  template <class T>
  void put(size_t place, T value) {
    std::memcpy(file.data() + place, &value, sizeof value);
  }
  /// Of the tensor "second": its first dimension, its type and its offset.
  size_t dims() const { return at("second") + 6 + 4; }
  size_t type() const { return dims() + 16; }
  size_t offset() const { return type() + 4; }
};

Status open(const std::vector<uint8_t>& bytes) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "m.gguf", bytes);
  return GgufFile::open(folder / "m.gguf").status();
}

TEST(GgufHostile, LiesAreNamed) {
  struct Case {
    const char* word;
    std::function<void(Bytes&)> lie;
  };
  for (const Case& c : {
           Case{"second", [](Bytes& b) { b.put<uint64_t>(b.offset(), 0); }},   // on the first
           Case{"second", [](Bytes& b) { b.put<uint64_t>(b.offset(), 128); }}, // half on the first
           Case{"second", [](Bytes& b) { b.put<uint64_t>(b.offset(), uint64_t{1} << 40); }},
           Case{"second", [](Bytes& b) { b.put<uint64_t>(b.offset(), ~uint64_t{31}); }},
           Case{"second", [](Bytes& b) { b.put<uint64_t>(b.dims(), uint64_t{1} << 33); }},
           Case{"overflow",
                [](Bytes& b) {
                  b.put<uint64_t>(b.dims(), uint64_t{1} << 40);
                  b.put<uint64_t>(b.dims() + 8, uint64_t{1} << 40);
                }},
           Case{"second", [](Bytes& b) { b.put<uint64_t>(b.dims(), 0); }},
           Case{"second", [](Bytes& b) { b.put<uint32_t>(b.type(), 0x7fffffff); }},
           Case{"claims", [](Bytes& b) { b.put<uint64_t>(kTensorCount, uint64_t{1} << 50); }},
           Case{"claims", [](Bytes& b) { b.put<uint64_t>(kEntryCount, ~uint64_t{0}); }},
           Case{"numbers", [](Bytes& b) { b.put<uint64_t>(b.at("numbers") + 7 + 8, uint64_t{1} << 61); }},
           Case{"words", [](Bytes& b) { b.put<uint64_t>(b.at("words") + 5 + 8, uint64_t{1} << 40); }},
           Case{"words", [](Bytes& b) { b.put<uint64_t>(b.at("one") - 8, ~uint64_t{0} - 2); }},
           Case{"UTF-8", [](Bytes& b) { b.put<uint8_t>(b.at("numbers"), 0xff); }},
           Case{"UTF-8", [](Bytes& b) { b.put<uint8_t>(b.at("second"), 0xff); }},
       }) {
    Bytes bytes;
    ASSERT_TRUE(open(bytes.file).ok()) << open(bytes.file).message();
    c.lie(bytes);
    const Status status = open(bytes.file);
    ASSERT_FALSE(status.ok()) << c.word;
    EXPECT_NE(status.code(), StatusCode::kInternal);
    EXPECT_TRUE(test::is_one_sentence(status.message())) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(c.word));
  }
}

TEST(GgufHostile, ArraysOfArraysEndInWords) {
  // Each level is twelve bytes: the element type and the count of one.
  constexpr size_t kDepth = 100000;
  std::vector<uint8_t> file = {'G', 'G', 'U', 'F'};
  const auto put = [&](auto value) {
    const auto* raw = reinterpret_cast<const uint8_t*>(&value);
    file.insert(file.end(), raw, raw + sizeof value);
  };
  put(uint32_t{3});
  put(uint64_t{0});
  put(uint64_t{1});
  put(uint64_t{1});
  file.push_back('n');
  put(static_cast<uint32_t>(GgufType::kArray));
  for (size_t i = 0; i < kDepth; ++i) {
    put(static_cast<uint32_t>(GgufType::kArray));
    put(uint64_t{1});
  }
  put(static_cast<uint32_t>(GgufType::kU8));
  put(uint64_t{0});
  const Status status = open(file);
  ASSERT_FALSE(status.ok());
  EXPECT_TRUE(test::is_one_sentence(status.message())) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("array"));
}

} // namespace
} // namespace cortiq::formats
