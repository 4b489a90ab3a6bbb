#include <gmock/gmock.h>

#include "formats/gguf/gguf_file.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class GgufMetadata : public ::testing::Test {
protected:
  GgufMetadata() {
    GgufBuilder()
        .number("u8", GgufType::kU8, uint8_t{200})
        .number("i32", GgufType::kI32, int32_t{7})
        .number("negative", GgufType::kI64, int64_t{-7})
        .number("u64", GgufType::kU64, ~uint64_t{0})
        .number("f32", GgufType::kF32, 0.5f)
        .number("f64", GgufType::kF64, -0.25)
        .number("bool", GgufType::kBool, uint8_t{1})
        .text("text", "llama")
        .array<int32_t>("ints", GgufType::kI32, {1, 2, 3})
        .array<float>("floats", GgufType::kF32, {1.5f, 2})
        .array<uint8_t>("bools", GgufType::kBool, {1, 0})
        .texts("texts", {"a", "", "b"})
        .write(folder_ / "a.gguf");
    StatusOr<GgufFile> file = GgufFile::open(folder_ / "a.gguf");
    EXPECT_TRUE(file.ok()) << file.status().message();
    file_.emplace(*std::move(file));
  }

  const GgufFile& file() const { return *file_; }

private:
  test::ScratchFolder folder_;
  std::optional<GgufFile> file_;
};

TEST_F(GgufMetadata, ConvertsIntegersThatFit) {
  EXPECT_EQ(*file().get_u64("u8"), 200u);
  EXPECT_EQ(*file().get_u64("i32"), 7u);
  EXPECT_EQ(*file().get_i64("negative"), -7);
  EXPECT_EQ(*file().get_u64("u64"), ~uint64_t{0});
  EXPECT_THAT(file().get_u64("negative").status().message(), HasSubstr("key negative is -7"));
  EXPECT_THAT(file().get_i64("u64").status().message(), HasSubstr("does not fit"));
}

TEST_F(GgufMetadata, ReadsTheOtherTypes) {
  EXPECT_EQ(*file().get_f64("f32"), 0.5);
  EXPECT_EQ(*file().get_f64("f64"), -0.25);
  EXPECT_TRUE(*file().get_bool("bool"));
  EXPECT_EQ(*file().get_string("text"), "llama");
}

TEST_F(GgufMetadata, NamesKeyAndFoundType) {
  EXPECT_THAT(file().get_u64("text").status().message(), HasSubstr("key text is of type string, expected an unsigned"));
  EXPECT_THAT(file().get_u64("f32").status().message(), HasSubstr("key f32 is of type f32"));
  EXPECT_THAT(file().get_f64("u8").status().message(), HasSubstr("key u8 is of type u8, expected a float"));
  EXPECT_THAT(file().get_string("ints").status().message(), HasSubstr("key ints is of type array of i32"));
  EXPECT_THAT(file().get_string("absent").status().message(), HasSubstr("the required key absent is missing"));
  EXPECT_THAT(file().get_u64_array("u8").status().message(), HasSubstr("key u8 is of type u8, expected an array"));
  EXPECT_THAT(file().get_u64_array("texts").status().message(), HasSubstr("array of string"));
}

TEST_F(GgufMetadata, DefaultsStandForMissingKeysOnly) {
  EXPECT_EQ(*file().get_u64_or("absent", 5), 5u);
  EXPECT_EQ(*file().get_u64_or("u8", 5), 200u);
  EXPECT_EQ(*file().get_string_or("absent", "x"), "x");
  EXPECT_FALSE(*file().get_bool_or("absent", false));
  EXPECT_FALSE(file().get_u64_or("text", 5).ok());
  EXPECT_FALSE(file().get_f64_or("text", 5).ok());
  EXPECT_EQ(*file().get_i64_or("absent", -1), -1);
}

TEST_F(GgufMetadata, ReadsArrays) {
  EXPECT_THAT(*file().get_u64_array("ints"), ElementsAre(1u, 2u, 3u));
  EXPECT_THAT(*file().get_i64_array("ints"), ElementsAre(1, 2, 3));
  EXPECT_THAT(*file().get_f64_array("floats"), ElementsAre(1.5, 2.0));
  EXPECT_THAT(*file().get_bool_array("bools"), ElementsAre(true, false));
  EXPECT_THAT(*file().get_string_array("texts"), ElementsAre("a", "", "b"));
}

TEST_F(GgufMetadata, PerLayerValuesAreScalarsOrArrays) {
  EXPECT_THAT(*file().get_per_layer_u64("u8", 3), ElementsAre(200u, 200u, 200u));
  EXPECT_THAT(*file().get_per_layer_u64("ints", 2), ElementsAre(1u, 2u));
  EXPECT_THAT(*file().get_per_layer_f64("floats", 2), ElementsAre(1.5, 2.0));
  EXPECT_THAT(*file().get_per_layer_bool("bool", 2), ElementsAre(true, true));
  EXPECT_THAT(file().get_per_layer_u64("ints", 4).status().message(),
              HasSubstr("key ints has 3 entries, but the model has 4 blocks"));
}

} // namespace
} // namespace cortiq::formats
