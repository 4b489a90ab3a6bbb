#include "formats/file_kind.h"

#include <gmock/gmock.h>

#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

TEST(DetectFileKind, KnowsTheThreeKinds) {
  const test::ScratchFolder folder;
  const std::pair<std::string_view, FileKind> cases[] = {
      {"CMF\x01....", FileKind::kCmf},
      {"GGUF....", FileKind::kGguf},
      {"\x7f"
       "ELF....",
       FileKind::kArtifact},
  };
  for (const auto& [bytes, kind] : cases) {
    test::write_bytes(folder / "f", test::bytes_of(bytes));
    const StatusOr<FileKind> found = detect_file_kind(folder / "f");
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, kind);
  }
}

TEST(DetectFileKind, ShowsTheBytesOfForeignFiles) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "f", test::bytes_of("PK"));
  EXPECT_THAT(detect_file_kind(folder / "f").status().message(), ::testing::HasSubstr("starts with 50 4b and"));
  test::write_bytes(folder / "f", {});
  EXPECT_THAT(detect_file_kind(folder / "f").status().message(), ::testing::HasSubstr("is empty"));
}

} // namespace
} // namespace cortiq::formats
