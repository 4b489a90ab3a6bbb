// The writer that takes payloads in pieces, held against the one that takes them whole.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/cmf/cmf_stream_writer.h"
#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

TEST(CmfStreamWriter, WritesWhatTheWholeWriterDoes) {
  const test::ScratchFolder folder;
  const std::vector<uint8_t> small(132, 0x3C), large(32768, 0x11), vocab(77, '{');
  CmfWriter whole(minimal_header());
  whole.add_tensor("q8", 3, {2, 64}, small);
  whole.add_tensor("large", 0, {128, 64}, large);
  whole.set_vocab(vocab);
  ASSERT_TRUE(whole.write(folder / "whole.cmf").ok());

  StatusOr<CmfStreamWriter> writer = CmfStreamWriter::create(folder / "pieces.cmf", minimal_header(),
                                                             {{"q8", 3, {2, 64}}, {"large", 0, {128, 64}}}, vocab);
  ASSERT_TRUE(writer.ok()) << writer.status().message();
  ASSERT_TRUE(writer->begin_tensor(small.size()).ok());
  // The end first: planes are written side by side.
  ASSERT_TRUE(writer->write_at(100, std::span(small).subspan(100)).ok());
  ASSERT_TRUE(writer->write_at(0, std::span(small).first(100)).ok());
  ASSERT_TRUE(writer->begin_tensor(large.size()).ok());
  ASSERT_TRUE(writer->write_at(0, large).ok());
  ASSERT_TRUE(writer->finish().ok());
  EXPECT_FALSE(std::filesystem::exists(folder / "pieces.cmf"));
  const StatusOr<CmfFile> before = CmfFile::open(writer->temporary_path());
  ASSERT_TRUE(before.ok()) << before.status().message();
  EXPECT_TRUE(before->verify().ok());
  ASSERT_TRUE(writer->commit().ok());
  EXPECT_EQ(test::read_bytes(folder / "pieces.cmf"), test::read_bytes(folder / "whole.cmf"));
}

TEST(CmfStreamWriter, LeavesNothingWithoutCommit) {
  const test::ScratchFolder folder;
  {
    StatusOr<CmfStreamWriter> writer = CmfStreamWriter::create(folder / "m.cmf", minimal_header(), {{"a", 0, {1}}}, {});
    ASSERT_TRUE(writer.ok());
    EXPECT_FALSE(writer->finish().ok()); // a payload is missing
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(CmfStreamWriter, RefusesNamesShapesAndHeadersThatNoReaderTakes) {
  const test::ScratchFolder folder;
  const auto refusal = [&](Json header, std::vector<CmfStreamTensor> tensors) {
    const StatusOr<CmfStreamWriter> writer =
        CmfStreamWriter::create(folder / "m.cmf", std::move(header), std::move(tensors), {});
    return writer.ok() ? std::string("none") : writer.status().message();
  };
  EXPECT_THAT(refusal(minimal_header(), {{"", 0, {1}}}), HasSubstr("name"));
  EXPECT_THAT(refusal(minimal_header(), {{"a", 0, {1}}, {"a", 0, {1}}}), HasSubstr("twice"));
  EXPECT_THAT(refusal(minimal_header(), {{"a", 0, {1, 1, 1, 1, 1, 1, 1}}}), HasSubstr("shape"));
  EXPECT_THAT(refusal(minimal_header(), {{"a", 0, {uint64_t{1} << 32}}}), HasSubstr("shape"));
  Json header = minimal_header();
  header["arch"].erase("hidden_size");
  EXPECT_THAT(refusal(header, {{"a", 0, {1}}}), HasSubstr("hidden_size"));
}

} // namespace
} // namespace cortiq::formats
