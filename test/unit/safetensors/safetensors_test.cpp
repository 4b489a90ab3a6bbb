// The safetensors reader: what a sound file gives, and every way in which one can be unsound.

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/safetensors/safetensors_file.h"
#include "test/unit/base/test_files.h"

namespace cortiq::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint8_t> file_of(std::string_view header, size_t data_bytes) {
  std::vector<uint8_t> file(8 + header.size() + data_bytes);
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  std::memcpy(file.data() + 8, header.data(), header.size());
  for (size_t i = 0; i < data_bytes; ++i)
    file[8 + header.size() + i] = static_cast<uint8_t>(i);
  return file;
}

constexpr std::string_view kSound = R"({"__metadata__":{"format":"pt"},)"
                                    R"("b":{"dtype":"F16","shape":[2,3],"data_offsets":[8,20]},)"
                                    R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                                    R"("c":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[20,24]},)"
                                    R"("empty":{"dtype":"BF16","shape":[0,4],"data_offsets":[24,24]}})";

TEST(Safetensors, GivesTensorsInTheOrderOfTheirBytes) {
  const std::vector<uint8_t> file = file_of(kSound, 24);
  const StatusOr<std::vector<Tensor>> tensors = parse_safetensors(file, "m.safetensors");
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 4u);
  EXPECT_EQ((*tensors)[0].name, "a");
  EXPECT_EQ((*tensors)[0].codec, &codec_info(CodecId::kF32));
  EXPECT_EQ((*tensors)[1].name, "b");
  EXPECT_THAT((*tensors)[1].shape, ElementsAre(2, 3));
  EXPECT_EQ((*tensors)[1].data.data(), file.data() + 8 + kSound.size() + 8);
  EXPECT_EQ((*tensors)[1].offset, 8 + kSound.size() + 8);
  EXPECT_EQ((*tensors)[2].codec, nullptr);
  EXPECT_EQ((*tensors)[2].type_name, "F8_E4M3");
  EXPECT_TRUE((*tensors)[3].data.empty());
}

TEST(Safetensors, EveryTruncationIsRefusedOrSound) {
  const std::vector<uint8_t> file = file_of(kSound, 24);
  for (size_t size = 0; size < file.size(); ++size) {
    const StatusOr<std::vector<Tensor>> tensors = parse_safetensors(std::span(file).first(size), "m.safetensors");
    ASSERT_FALSE(tensors.ok()) << size;
    EXPECT_TRUE(test::is_one_sentence(tensors.status().message())) << tensors.status().message();
    EXPECT_THAT(tensors.status().message(), HasSubstr("m.safetensors"));
  }
}

TEST(Safetensors, UnsoundHeadersAreNamed) {
  struct Case {
    const char* header;
    const char* word;
  };
  for (const Case& c : {
           Case{"[]", "JSON object"},
           Case{"{", "JSON"},
           Case{R"({"a":7})", "dtype"},
           Case{R"({"a":{"shape":[1],"data_offsets":[0,4]}})", "dtype"},
           Case{R"({"a":{"dtype":"F31","shape":[1],"data_offsets":[0,4]}})", "F31"},
           Case{R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "shape"},
           Case{R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", "shape"},
           Case{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", "data_offsets"},
           Case{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", "lies at bytes"},
           Case{R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", "lies at bytes"},
           Case{R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", "not the size"},
           Case{R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", "not the size"},
           Case{R"({"a":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})", "shape"},
           Case{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{}})", "twice"},
           Case{R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                R"("b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}})",
                "overlaps"},
       }) {
    const StatusOr<std::vector<Tensor>> tensors = parse_safetensors(file_of(c.header, 8), "m.safetensors");
    ASSERT_FALSE(tensors.ok()) << c.header;
    EXPECT_THAT(tensors.status().message(), HasSubstr(c.word)) << c.header;
  }
}

TEST(Safetensors, FoldersAreOneFileOrWhatTheIndexNames) {
  const test::ScratchFolder folder;
  EXPECT_FALSE(SafetensorsFolder::open(folder.path()).ok());
  test::write_bytes(folder / "first.safetensors",
                    file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
  StatusOr<SafetensorsFolder> single = SafetensorsFolder::open(folder.path());
  ASSERT_TRUE(single.ok()) << single.status().message();
  EXPECT_NE(single->find("a"), nullptr);
  EXPECT_EQ(single->find("b"), nullptr);

  test::write_bytes(folder / "second.safetensors",
                    file_of(R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
  const StatusOr<SafetensorsFolder> unclear = SafetensorsFolder::open(folder.path());
  ASSERT_FALSE(unclear.ok());
  EXPECT_THAT(unclear.status().message(), HasSubstr("index.json"));

  const auto with_index = [&](std::string_view text) {
    test::write_bytes(folder / "model.safetensors.index.json", test::bytes_of(text));
    return SafetensorsFolder::open(folder.path());
  };
  const StatusOr<SafetensorsFolder> both =
      with_index(R"({"weight_map":{"a":"first.safetensors","b":"second.safetensors"}})");
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_EQ(both->file_count(), 2u);
  EXPECT_EQ(both->find("b")->file, 1u);
  for (const char* index :
       {R"([])", R"({"weight_map":7})", R"({"weight_map":{"a":7}})", R"({"weight_map":{"a":"../first.safetensors"}})",
        R"({"weight_map":{"a":".."}})", R"({"weight_map":{"a":"second.safetensors"}})",
        R"({"weight_map":{"a":"third.safetensors"}})"})
    EXPECT_FALSE(with_index(index).ok()) << index;
}

TEST(Safetensors, ATensorInTwoFilesIsRefused) {
  const test::ScratchFolder folder;
  for (const char* name : {"x.safetensors", "y.safetensors"})
    test::write_bytes(folder / name, file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8));
  test::write_bytes(folder / "model.safetensors.index.json",
                    test::bytes_of(R"({"weight_map":{"a":"x.safetensors","b":"y.safetensors"}})"));
  const StatusOr<SafetensorsFolder> opened = SafetensorsFolder::open(folder.path());
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.status().message(), HasSubstr("another file"));
}

} // namespace
} // namespace cortiq::formats
