#include "formats/cmf/cmf_writer.h"

#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>

#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(CmfWriter, WritesWhatTheReaderReads) {
  const test::ScratchFolder folder;
  ASSERT_EQ(write_sample(folder / "a.cmf").message(), "");
  const StatusOr<CmfFile> file = CmfFile::open(folder / "a.cmf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->verify().message(), "");
  ASSERT_EQ(file->tensors().size(), 6u);
  EXPECT_EQ(file->tensors()[0].name, "scalar");
  EXPECT_TRUE(file->tensors()[0].shape.empty());
  EXPECT_THAT(file->find("q4tp")->shape, ElementsAre(2u, 64u));
  EXPECT_EQ(file->find("q4tp")->type_name, "q4tp");
  EXPECT_EQ(file->find("q1")->codec, find_cmf_codec(12));
  EXPECT_EQ(file->find("large")->data.size(), 32768u);
  EXPECT_EQ(file->find("absent"), nullptr);
  EXPECT_EQ(std::string(file->vocab().begin(), file->vocab().end()), "{\"model\":{}}");
  ASSERT_TRUE(file->masks().has_value());
  EXPECT_EQ(file->masks()->masks[0].name, "t");
  ASSERT_TRUE(file->tokenizer_config().has_value());
  EXPECT_THAT(file->tokenizer_config()->eos_token_ids, ElementsAre(3u, 4u));
  EXPECT_TRUE(file->envelope().has(CmfFeature::kTensorDir));
  EXPECT_TRUE(file->envelope().has(CmfFeature::kBinaryMasks));
  EXPECT_FALSE(file->envelope().has(CmfFeature::kQuant2F));
}

TEST(CmfWriter, KeepsTheOrderAndAlignmentOfTheSpecification) {
  const test::ScratchFolder folder;
  ASSERT_EQ(write_sample(folder / "a.cmf").message(), "");
  const StatusOr<CmfFile> file = CmfFile::open(folder / "a.cmf");
  ASSERT_TRUE(file.ok());
  const CmfEnvelope& e = file->envelope();
  EXPECT_EQ(e.header.offset, 128u);
  EXPECT_EQ(e.directory.offset, 128 + e.header.size);
  EXPECT_EQ(e.data.offset % 4096, 0u);
  EXPECT_LT(e.data.offset - e.directory.offset - e.directory.size, 4096u);
  EXPECT_EQ(e.masks.offset, e.data.offset + e.data.size);
  EXPECT_EQ(e.vocab.offset, e.masks.offset + e.masks.size);
  EXPECT_EQ(file->file_bytes(0).size(), e.vocab.offset + e.vocab.size);
  for (const Tensor& tensor : file->tensors())
    EXPECT_EQ((tensor.offset - e.data.offset) % (tensor.data.size() < 16384 ? 64 : 4096), 0u) << tensor.name;
}

TEST(CmfWriter, SameContentSameBytes) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_sample(folder / "a.cmf").ok());
  ASSERT_TRUE(write_sample(folder / "b.cmf").ok());
  EXPECT_EQ(test::read_bytes(folder / "a.cmf"), test::read_bytes(folder / "b.cmf"));
}

TEST(CmfWriter, AcceptsTheMinimalHeader) {
  const test::ScratchFolder folder;
  ASSERT_EQ(CmfWriter(minimal_header()).write(folder / "a.cmf").message(), "");
  const StatusOr<CmfFile> file = CmfFile::open(folder / "a.cmf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->verify().message(), "");
  EXPECT_EQ(file->check_runnable().message(), "");
  EXPECT_EQ(file->arch().hidden_size, 64u);
}

TEST(CmfWriter, RewritesAFixtureWithoutLoss) {
  CORTIQ_NEED_FIXTURES();
  const test::ScratchFolder folder;
  const StatusOr<CmfFile> in = CmfFile::open(test::fixtures() + "/models/llama-mixed.cmf");
  ASSERT_TRUE(in.ok()) << in.status().message();
  CmfWriter writer(in->header());
  for (const Tensor& tensor : in->tensors())
    writer.add_tensor(tensor.name, tensor.type_code, tensor.shape, tensor.data);
  writer.set_vocab(in->vocab());
  ASSERT_EQ(writer.write(folder / "out.cmf").message(), "");
  const StatusOr<CmfFile> out = CmfFile::open(folder / "out.cmf");
  ASSERT_TRUE(out.ok()) << out.status().message();
  EXPECT_EQ(out->verify().message(), "");
  EXPECT_EQ(out->header(), in->header());
  EXPECT_EQ(out->envelope().required_features, in->envelope().required_features);
  ASSERT_EQ(out->tensors().size(), in->tensors().size());
  for (size_t i = 0; i < in->tensors().size(); ++i)
    EXPECT_EQ(out->stored_hash(i), in->stored_hash(i)) << in->tensors()[i].name;
}

TEST(CmfWriter, RefusesWhatTheReaderWouldRefuse) {
  const test::ScratchFolder folder;
  const std::vector<uint8_t> payload(256);
  const auto attempt = [&](const Json& header, const std::string& name, int dtype, std::vector<uint64_t> shape,
                           size_t size, int times) {
    CmfWriter writer(header);
    for (int i = 0; i < times; ++i)
      writer.add_tensor(name, dtype, shape, std::span(payload).first(size));
    const Status status = writer.write(folder / "a.cmf");
    EXPECT_FALSE(std::filesystem::exists(folder / "a.cmf"));
    return status.message();
  };
  EXPECT_THAT(attempt(minimal_header(), "a", 0, {4}, 15, 1), HasSubstr("byte length"));
  EXPECT_THAT(attempt(minimal_header(), "a", 99, {4}, 16, 1), HasSubstr("unknown dtype id 99"));
  EXPECT_THAT(attempt(minimal_header(), "a", 0, {4}, 16, 2), HasSubstr("twice"));
  EXPECT_THAT(attempt(minimal_header(), "\xff", 0, {4}, 16, 1), HasSubstr("UTF-8"));
  EXPECT_THAT(attempt(minimal_header(), "a", 0, {uint64_t{1} << 32}, 16, 1), HasSubstr("cannot hold"));
  EXPECT_THAT(attempt(Json::object(), "a", 0, {4}, 16, 1), HasSubstr("missing"));
}

} // namespace
} // namespace cortiq::formats
