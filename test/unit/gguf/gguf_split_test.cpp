#include <gmock/gmock.h>

#include "formats/gguf/gguf_file.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

/// Part `number` (from 0) of `count`, with one tensor.
GgufBuilder part(uint16_t number, uint16_t count, int32_t total, const std::string& tensor) {
  GgufBuilder out;
  out.text("general.architecture", "llama")
      .number("split.no", GgufType::kU16, number)
      .number("split.count", GgufType::kU16, count)
      .number("split.tensors.count", GgufType::kI32, total)
      .tensor(tensor, {32, 1}, 2, 18);
  return out;
}

class GgufSplit : public ::testing::Test {
protected:
  std::string first() const { return folder_ / "m-00001-of-00002.gguf"; }
  std::string second() const { return folder_ / "m-00002-of-00002.gguf"; }
  static std::string verdict(const std::string& path) { return GgufFile::open(path).status().message(); }

  test::ScratchFolder folder_;
};

TEST_F(GgufSplit, PartsAreOneModel) {
  part(0, 2, 2, "a").write(first());
  part(1, 2, 2, "b").write(second());
  const StatusOr<GgufFile> file = GgufFile::open(first());
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->file_count(), 2u);
  EXPECT_EQ(file->find("a")->file, 0u);
  EXPECT_EQ(file->find("b")->file, 1u);
  EXPECT_EQ(file->find("b")->data.data(), file->file_bytes(1).data() + file->find("b")->offset);
  EXPECT_THAT(verdict(second()), HasSubstr("is part 2 of 2; open the first, '" + first()));
}

TEST_F(GgufSplit, RefusesPartsThatDisagree) {
  part(0, 2, 2, "a").write(first());
  EXPECT_THAT(verdict(first()), HasSubstr("part 2 of 2 is missing: '" + second()));
  part(0, 2, 2, "b").write(second());
  EXPECT_THAT(verdict(first()), HasSubstr("split.no 0 of split.count 2, expected 1 of 2"));
  part(1, 3, 2, "b").write(second());
  EXPECT_THAT(verdict(first()), HasSubstr("split.no 1 of split.count 3"));
  part(1, 2, 2, "a").write(second());
  EXPECT_THAT(verdict(first()), HasSubstr("the tensor 'a' stands in two parts"));
  part(1, 2, 2, "b").write(second());
  part(0, 2, 3, "a").write(first());
  EXPECT_THAT(verdict(first()), HasSubstr("split.tensors.count is 3, but the parts hold 2"));
}

TEST_F(GgufSplit, NameFollowsThePattern) {
  part(0, 2, 2, "a").write(folder_ / "m.gguf");
  EXPECT_THAT(verdict(folder_ / "m.gguf"), HasSubstr("does not end in -00001-of-00002.gguf"));
  part(0, 1, 1, "a").write(folder_ / "m.gguf");
  EXPECT_EQ(verdict(folder_ / "m.gguf"), "") << "a split of one is a single file";
  part(5, 2, 2, "a").write(folder_ / "m.gguf");
  EXPECT_THAT(verdict(folder_ / "m.gguf"), HasSubstr("split.no 5 of split.count 2"));
}

} // namespace
} // namespace cortiq::formats
