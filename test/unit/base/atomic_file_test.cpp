#include "formats/atomic_file.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <iterator>
#include <utility>

#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

size_t entries_of(const test::ScratchFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

std::string text_of(const std::string& path) {
  const std::vector<uint8_t> bytes = test::read_bytes(path);
  return {bytes.begin(), bytes.end()};
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  const test::ScratchFolder folder;
  StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->write("abc").ok());
  ASSERT_TRUE(file->pad_to(8).ok());
  ASSERT_TRUE(file->write_at(1, test::bytes_of("X")).ok());
  EXPECT_EQ(file->size(), 8u);
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(text_of(folder / "out"), std::string("aXc\0\0\0\0\0", 8));
  EXPECT_EQ(entries_of(folder), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "out", test::bytes_of("old"));
  {
    StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("new").ok());
  }
  EXPECT_EQ(text_of(folder / "out"), "old");
  EXPECT_EQ(entries_of(folder), 1u);
}

TEST(AtomicFile, CanBeMoved) {
  const test::ScratchFolder folder;
  StatusOr<AtomicFile> file = AtomicFile::create(folder / "out");
  ASSERT_TRUE(file.ok());
  AtomicFile moved = *std::move(file);
  ASSERT_TRUE(moved.write("abc").ok());
  ASSERT_TRUE(moved.commit().ok());
  EXPECT_EQ(text_of(folder / "out"), "abc");
}

TEST(AtomicFile, RefusesWhatIsNoPlaceForAFile) {
  const test::ScratchFolder folder;
  for (const std::string& path : {folder.path(), folder / "no/such/folder", std::string("/dev/null"), std::string()}) {
    const StatusOr<AtomicFile> file = AtomicFile::create(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_TRUE(test::is_one_sentence(file.status().message()));
  }
}

TEST(WriteFile, WritesAWholeFile) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_file(folder / "out", test::bytes_of("abc")).ok());
  EXPECT_EQ(text_of(folder / "out"), "abc");
}

} // namespace
} // namespace cortiq::formats
