// Type ids that several writers use: 42 is told apart by the extent of the data, 143 by the metadata.

#include <gmock/gmock.h>

#include "formats/gguf/gguf_file.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::formats {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> types(const GgufBuilder& builder, const test::ScratchFolder& folder) {
  builder.write(folder / "a.gguf");
  const StatusOr<GgufFile> file = GgufFile::open(folder / "a.gguf");
  EXPECT_TRUE(file.ok()) << file.status().message();
  std::vector<std::string> names;
  for (const Tensor& tensor : file.ok() ? file->tensors() : std::vector<Tensor>()) {
    EXPECT_TRUE(decode_tensor(tensor).ok()) << tensor.name;
    names.emplace_back(tensor.codec ? tensor.codec->name : tensor.type_name);
  }
  return names;
}

TEST(GgufSharedIds, TheDataSaysWhat42Is) {
  const test::ScratchFolder folder;
  // Eight rows of 256: 32 blocks of 18 bytes, 16 of 34, 8 of 42.
  EXPECT_THAT(types(GgufBuilder().tensor("a", {256, 8}, 42, 576).tensor("b", {256, 8}, 42, 576), folder),
              ElementsAre("q2_0", "q2_0"));
  EXPECT_THAT(types(GgufBuilder().tensor("a", {256, 8}, 42, 544).tensor("b", {256, 8}, 42, 544), folder),
              ElementsAre("q2_0_g128", "q2_0_g128"));
  EXPECT_THAT(types(GgufBuilder().tensor("a", {256, 8}, 42, 336).tensor("b", {256, 8}, 42, 336), folder),
              ElementsAre("stq1_0", "stq1_0"));
  // Both fill 64 bytes with the padding: upstream's reading wins.
  EXPECT_THAT(types(GgufBuilder().tensor("a", {128, 1}, 42, 36).tensor("b", {32, 1}, 0, 128), folder),
              ElementsAre("q2_0", "f32"));
}

TEST(GgufSharedIds, BytesBehindTheLastTensorDoNotCount) {
  const test::ScratchFolder folder;
  std::vector<uint8_t> bytes = GgufBuilder().tensor("a", {256, 40}, 42, 40 * 68).bytes();
  bytes.resize(bytes.size() + 100);
  test::write_bytes(folder / "a.gguf", bytes);
  const StatusOr<GgufFile> file = GgufFile::open(folder / "a.gguf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors()[0].type_name, "Q2_0_g128");
}

TEST(GgufSharedIds, TheMetadataSaysWhat143Is) {
  const test::ScratchFolder folder;
  EXPECT_THAT(types(GgufBuilder().tensor("a", {128, 2}, 143, 128), folder), ElementsAre("g8_0"));
  EXPECT_THAT(types(GgufBuilder().text("prism.version", "1").tensor("a", {128, 2}, 143, 56), folder),
              ElementsAre("ptq1_0"));
}

TEST(GgufSharedIds, BlocksOf128HaveAnIdOfTheirOwn) {
  const test::ScratchFolder folder;
  EXPECT_THAT(types(GgufBuilder().tensor("a", {128, 2}, 142, 68), folder), ElementsAre("q2_0_g128"));
}

TEST(GgufSharedIds, TrailersBelongToTheirTensor) {
  const test::ScratchFolder folder;
  EXPECT_THAT(types(GgufBuilder().tensor("a", {128, 3}, 36, 128).tensor("b", {5, 3}, 37, 47), folder),
              ElementsAre("i2_s", "i8_s"));
}

} // namespace
} // namespace cortiq::formats
