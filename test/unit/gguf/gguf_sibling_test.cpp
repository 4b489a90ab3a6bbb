// Parts of a split in a folder that somebody else changes.

#include <filesystem>
#include <gmock/gmock.h>

#include "formats/file_guard.h"
#include "formats/gguf/gguf_file.h"
#include "test/unit/base/sibling_faults.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

class GgufSiblings : public ::testing::Test {
protected:
  void write(uint16_t number, const std::string& path, uint16_t count = 2) const {
    GgufBuilder builder;
    builder.text("general.architecture", "llama")
        .number("split.no", GgufType::kU16, number)
        .number("split.count", GgufType::kU16, count)
        .number("split.tensors.count", GgufType::kI32, int32_t{2})
        .tensor(number == 0 ? "a" : "b", {32, 1024}, 0, 131072);
    builder.write(path);
  }

  test::ScratchFolder folder_;
  std::string first_ = folder_ / "m\xFF\n-00001-of-00002.gguf";
  std::string second_ = folder_ / "m\xFF\n-00002-of-00002.gguf";
};

TEST_F(GgufSiblings, MayBeLinksAndVanishOnceOpened) {
  write(0, first_);
  write(1, folder_ / "elsewhere");
  std::filesystem::create_symlink("elsewhere", second_);
  const StatusOr<GgufFile> file = GgufFile::open(first_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  std::filesystem::remove_all(folder_.path());
  EXPECT_TRUE(decode_tensor(*file->find("b")).ok());
}

TEST_F(GgufSiblings, AreRefusedInWordsWhateverStandsThere) {
  write(0, first_);
  for (const test::SiblingFault& fault : test::sibling_faults()) {
    std::filesystem::remove(second_);
    ASSERT_EQ(fault.put(second_), 0) << fault.what;
    const Status status = GgufFile::open(first_).status();
    EXPECT_THAT(status.message(), HasSubstr("part 2 of 2")) << fault.what;
    EXPECT_THAT(status.message(), HasSubstr(fault.reason)) << fault.what;
    EXPECT_EQ(status.message().find("is missing") != std::string::npos, fault.what == std::string_view("nothing"))
        << status.message();
    EXPECT_TRUE(test::is_one_sentence(status.message())) << status.message();
    EXPECT_EQ(exit_code(status), 2);
  }
}

TEST_F(GgufSiblings, AreNotCountedBeforeTheyAreThere) {
  write(0, folder_ / "m-00001-of-65535.gguf", 65535);
  EXPECT_THAT(GgufFile::open(folder_ / "m-00001-of-65535.gguf").status().message(),
              HasSubstr("part 2 of 65535 is missing"));
}

using GgufSiblingsDeathTest = GgufSiblings;

TEST_F(GgufSiblingsDeathTest, NameTheOneThatWasCut) {
  write(0, first_);
  write(1, second_);
  EXPECT_EXIT(
      {
        install_file_guard("a-tool");
        const StatusOr<GgufFile> file = GgufFile::open(first_);
        std::filesystem::resize_file(second_, 4096);
        std::exit(file.ok() && decode_tensor(*file->find("b")).ok() ? 4 : 3);
      },
      ::testing::ExitedWithCode(2), "^a-tool: '.*-00002-of-00002.gguf' became shorter[^\n]*\n$");
}

} // namespace
} // namespace cortiq::formats
