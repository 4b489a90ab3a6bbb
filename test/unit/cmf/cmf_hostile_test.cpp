// Files made to harm: every kind of lie about places, sizes and depth is refused in one sentence, whatever the
// fixtures.

#include <cstring>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

constexpr size_t kRecord = 56, kRecordsAt = 16; // of the directory

/// A sound file's bytes, and where its parts stand.
struct Bytes {
  std::vector<uint8_t> file;
  size_t header = 0, directory = 0;

  explicit Bytes(std::string_view provenance) {
    const test::ScratchFolder folder;
    Json head = minimal_header();
    head["provenance"] = std::string(provenance);
    const std::vector<uint8_t> payload(256, 0x3c);
    CmfWriter writer(head);
    writer.add_tensor("first", 0, {64}, payload);
    writer.add_tensor("second", 0, {8, 8}, payload);
    EXPECT_TRUE(writer.write(folder / "m.cmf").ok());
    file = test::read_bytes(folder / "m.cmf");
    header = get<uint64_t>(0x10);
    directory = get<uint64_t>(0x20);
  }

  template <class T>
  T get(size_t at) const {
    T value;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
  }
  template <class T>
  void put(size_t at, T value) {
    std::memcpy(file.data() + at, &value, sizeof value);
  }
  size_t record(size_t i) const { return directory + kRecordsAt + i * kRecord; }
};

Status open(const std::vector<uint8_t>& bytes) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "m.cmf", bytes);
  return CmfFile::open(folder / "m.cmf").status();
}

TEST(CmfHostile, LiesOfTheDirectoryAreNamed) {
  struct Case {
    const char* word;
    std::function<void(Bytes&)> lie;
  };
  for (const Case& c : {
           Case{"share bytes", [](Bytes& b) { b.put<uint64_t>(b.record(1) + 32, b.get<uint64_t>(b.record(0) + 32)); }},
           Case{"share bytes",
                [](Bytes& b) { b.put<uint64_t>(b.record(1) + 32, b.get<uint64_t>(b.record(0) + 32) + 64); }},
           Case{"ends past the data", [](Bytes& b) { b.put<uint64_t>(b.record(1) + 32, uint64_t{1} << 40); }},
           Case{"ends past the data", [](Bytes& b) { b.put<uint64_t>(b.record(1) + 32, ~uint64_t{63}); }},
           Case{"ends past the data", [](Bytes& b) { b.put<uint64_t>(b.record(1) + 40, ~uint64_t{0}); }},
           Case{"byte length", [](Bytes& b) { b.put<uint32_t>(b.record(1) + 8, 7); }},
           Case{"overflows",
                [](Bytes& b) {
                  b.put<uint8_t>(b.record(1) + 7, 3);
                  for (size_t i = 0; i < 3; ++i)
                    b.put<uint32_t>(b.record(1) + 8 + 4 * i, ~uint32_t{0});
                }},
           Case{"without any weight",
                [](Bytes& b) {
                  b.put<uint32_t>(b.record(1) + 8, 0);
                  b.put<uint64_t>(b.record(1) + 40, 0);
                }},
           Case{"does not fit", [](Bytes& b) { b.put<uint64_t>(b.directory, uint64_t{1} << 60); }},
           Case{"does not fit", [](Bytes& b) { b.put<uint64_t>(b.directory, 1000); }},
           Case{"outside the pool", [](Bytes& b) { b.put<uint32_t>(b.record(1), 1 << 20); }},
           Case{"overlap each other", [](Bytes& b) { b.put<uint16_t>(b.record(0) + 4, 11); }}, // "firstsecond"
           Case{"not UTF-8",
                [](Bytes& b) {
                  const uint64_t pool = b.get<uint64_t>(b.directory + 8);
                  b.put<uint8_t>(b.directory + pool + b.get<uint32_t>(b.record(1)), 0xff);
                }},
           Case{"name is empty", [](Bytes& b) { b.put<uint16_t>(b.record(1) + 4, 0); }},
       }) {
    Bytes bytes("sound");
    ASSERT_TRUE(open(bytes.file).ok()) << open(bytes.file).message();
    c.lie(bytes);
    const Status status = open(bytes.file);
    ASSERT_FALSE(status.ok()) << c.word;
    EXPECT_TRUE(test::is_one_sentence(status.message())) << status.message();
    EXPECT_THAT(status.message(), HasSubstr(c.word));
  }
}

TEST(CmfHostile, DeepJsonEndsInWords) {
  // The place of a string in the header becomes brackets, as many as fit.
  constexpr size_t kDepth = 200000;
  for (const char* bracket : {"[", "{\"a\":"}) {
    Bytes bytes(std::string(kDepth, 'x'));
    const std::string_view text(reinterpret_cast<const char*>(bytes.file.data()), bytes.file.size());
    const size_t at = text.find("\"xxx");
    ASSERT_NE(at, std::string_view::npos);
    const size_t unit = std::strlen(bracket);
    for (size_t i = 0; i + unit <= kDepth; i += unit)
      std::memcpy(bytes.file.data() + at + i, bracket, unit);
    const Status status = open(bytes.file);
    ASSERT_FALSE(status.ok());
    EXPECT_THAT(status.message(), HasSubstr("nests deeper"));
  }
}

TEST(CmfHostile, SectionsEndWithTheFile) {
  for (const size_t section : {0x10, 0x20, 0x30}) {
    for (const uint64_t size : {uint64_t{1} << 40, ~uint64_t{0}, ~uint64_t{0} - 4096}) {
      Bytes bytes("sound");
      bytes.put<uint64_t>(section + 8, size);
      EXPECT_FALSE(open(bytes.file).ok()) << section;
    }
  }
  Bytes bytes("sound"); // a masks section over the whole file, whose first bytes are no count
  bytes.put<uint64_t>(0x40, 0);
  bytes.put<uint64_t>(0x48, bytes.file.size());
  EXPECT_FALSE(open(bytes.file).ok());
}

} // namespace
} // namespace cortiq::formats
