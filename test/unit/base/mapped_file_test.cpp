#include "formats/mapped_file.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

TEST(MappedFile, GivesTheBytesOfTheFile) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "a", test::bytes_of("hello"));
  const StatusOr<MappedFile> file = MappedFile::open(folder / "a");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(std::string(file->bytes().begin(), file->bytes().end()), "hello");
  EXPECT_EQ(file->path(), folder / "a");
}

TEST(MappedFile, KeepsItsAddressWhenMoved) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "a", test::bytes_of("hello"));
  StatusOr<MappedFile> file = MappedFile::open(folder / "a");
  ASSERT_TRUE(file.ok());
  const uint8_t* before = file->bytes().data();
  const MappedFile moved = *std::move(file);
  EXPECT_EQ(moved.bytes().data(), before);
}

TEST(MappedFile, TakesAnyByteStringAsPath) {
  const test::ScratchFolder folder;
  const std::string path = folder / "\xff\xfe \n'\"";
  test::write_bytes(path, test::bytes_of("x"));
  const StatusOr<MappedFile> file = MappedFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->bytes().size(), 1u);
}

TEST(MappedFile, GivesAnEmptyViewOfAnEmptyFile) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "empty", {});
  const StatusOr<MappedFile> file = MappedFile::open(folder / "empty");
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->bytes().empty());
}

TEST(MappedFile, ReadsWhatCannotBeMapped) {
  // Files of /proc state a size of 0 and cannot be mapped; /sys attributes state a page and refuse mmap.
  const std::string attribute = "/sys/kernel/mm/transparent_hugepage/enabled";
  if (access(attribute.c_str(), R_OK) != 0)
    GTEST_SKIP() << "this kernel has no " << attribute;
  const StatusOr<MappedFile> file = MappedFile::open(attribute);
  // The stated size is larger than what can be read, which must be a failure in words and never a short view.
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(file.status().message(), HasSubstr("became shorter"));
}

TEST(MappedFile, SaysInOneSentenceWhatIsWrong) {
  const test::ScratchFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  const std::pair<std::string, const char*> cases[] = {
      {folder / "missing\nfile", "does not exist"}, {folder.path(), "is a directory"},
      {folder / "pipe", "not a regular file"},      {"", "not a file name"},
      {std::string("a\0b", 3), "not a file name"},  {folder / "pipe/below", "cannot be opened"},
  };
  for (const auto& [path, reason] : cases) {
    const StatusOr<MappedFile> file = MappedFile::open(path);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_THAT(file.status().message(), HasSubstr(reason));
    EXPECT_TRUE(test::is_one_sentence(file.status().message())) << file.status().message();
    EXPECT_EQ(exit_code(file.status()), 2);
  }
}

} // namespace
} // namespace cortiq::formats
