#include "formats/input_files.h"

#include <filesystem>
#include <gmock/gmock.h>

#include "formats/mapped_file.h"
#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

TEST(InputFiles, WhatWasReadIsNoOutputByAnyName) {
  const test::ScratchFolder folder;
  test::write_bytes(folder / "in", test::bytes_of("abc"));
  test::write_bytes(folder / "other", test::bytes_of("abc"));
  std::filesystem::create_symlink(folder / "in", folder / "link");
  std::filesystem::create_hard_link(folder / "in", folder / "twin");
  ASSERT_TRUE(check_output(folder / "in").ok());
  ASSERT_TRUE(MappedFile::open(folder / "in").ok());
  for (const char* name : {"in", "./in", "link", "twin"}) {
    const Status status = check_output(folder / name);
    ASSERT_FALSE(status.ok()) << name;
    EXPECT_TRUE(test::is_one_sentence(status.message()));
  }
  EXPECT_TRUE(check_output(folder / "other").ok());
  EXPECT_TRUE(check_output(folder / "new").ok());
  EXPECT_TRUE(check_output("").ok());
}

TEST(InputFiles, AModelIsAllItsPartsWithSignatures) {
  const test::ScratchFolder folder;
  for (const char* name : {"m-00001-of-00003.cmf", "m-00002-of-00003.cmf", "m-00003-of-00003.cmf",
                           "m-00002-of-00003.cmf.sig", "m-00001-of-00002.cmf", "tokenizer.json", "plain.gguf"})
    test::write_bytes(folder / name, test::bytes_of("x"));
  EXPECT_THAT(model_files(folder / "m-00001-of-00003.cmf"),
              testing::ElementsAre(folder / "m-00001-of-00003.cmf", folder / "m-00002-of-00003.cmf",
                                   folder / "m-00002-of-00003.cmf.sig", folder / "m-00003-of-00003.cmf",
                                   folder / "tokenizer.json"));
  EXPECT_THAT(model_files(folder / "plain.gguf"),
              testing::ElementsAre(folder / "plain.gguf", folder / "tokenizer.json"));
  EXPECT_THAT(model_files(folder / "absent-00001-of-99999.gguf"), testing::ElementsAre(folder / "tokenizer.json"));
}

} // namespace
} // namespace cortiq::formats
