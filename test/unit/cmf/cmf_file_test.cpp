#include "formats/cmf/cmf_file.h"

#include <cstring>
#include <gmock/gmock.h>
#include <map>

#include "formats/cmf/hash64.h"
#include "test/unit/cmf/sample.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

std::string open_and_verify(const std::string& path) {
  const StatusOr<CmfFile> file = CmfFile::open(path);
  return file.ok() ? file->verify().message() : file.status().message();
}

TEST(CmfFixtures, AllOpenAndVerify) {
  CORTIQ_NEED_FIXTURES();
  size_t opened = 0;
  for (const std::string& path : test::files_in(test::fixtures() + "/models", ".cmf")) {
    const bool later_shard = path.find("-00002-of-") != path.npos || path.find("-00003-of-") != path.npos;
    if (later_shard) {
      EXPECT_THAT(open_and_verify(path), HasSubstr("open the first")) << path;
      continue;
    }
    EXPECT_EQ(open_and_verify(path), "");
    ++opened;
  }
  EXPECT_GT(opened, 40u);
}

TEST(CmfFixtures, ShardsAreOneModel) {
  CORTIQ_NEED_FIXTURES();
  const StatusOr<CmfFile> file = CmfFile::open(test::fixtures() + "/models/sharded-00001-of-00003.cmf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->file_count(), 3u);
  EXPECT_EQ(file->tensors().size(), 69u);
  EXPECT_FALSE(file->vocab().empty());
  std::map<uint32_t, size_t> in_file;
  for (const Tensor& tensor : file->tensors()) {
    ++in_file[tensor.file];
    EXPECT_EQ(tensor.data.data(), file->file_bytes(tensor.file).data() + tensor.offset);
  }
  EXPECT_EQ(in_file, (std::map<uint32_t, size_t>{{0, 11}, {1, 29}, {2, 29}}));
}

TEST(CmfFixtures, SkillsAndMasksAreListed) {
  CORTIQ_NEED_FIXTURES();
  const StatusOr<CmfFile> skills = CmfFile::open(test::fixtures() + "/models/skills.cmf");
  ASSERT_TRUE(skills.ok()) << skills.status().message();
  ASSERT_EQ(skills->skills().size(), 2u);
  EXPECT_EQ(skills->skills()[0].id, "story");
  const StatusOr<CmfFile> masks = CmfFile::open(test::fixtures() + "/models/moe-mask.cmf");
  ASSERT_TRUE(masks.ok()) << masks.status().message();
  EXPECT_EQ(masks->masks()->masks[0].experts.size(), 3u * 2);
  EXPECT_EQ(masks->check_runnable().message(), "");
}

TEST(CmfFixtures, StandaloneSkillFileIsNotRun) {
  CORTIQ_NEED_FIXTURES();
  const StatusOr<CmfFile> file = CmfFile::open(test::fixtures() + "/models/alone-skill.cmf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_THAT(file->check_runnable().message(), HasSubstr("standalone skill file"));
}

TEST(CmfFixtures, EveryTensorOfAMixedModelDecodes) {
  CORTIQ_NEED_FIXTURES();
  const StatusOr<CmfFile> file = CmfFile::open(test::fixtures() + "/models/qwen3-mxfp4.cmf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  for (const Tensor& tensor : file->tensors())
    EXPECT_TRUE(decode_tensor(tensor).ok()) << tensor.name;
}

// What the message has to contain for each file of models/bad. Files that only a model builder can refuse are absent.
const std::map<std::string, const char*> kReasons = {
    {"blr_rank.cmf", "low-rank rank 4294967288"},
    {"data_unaligned.cmf", "data offset 4160 is not a multiple of 4096"},
    {"dir_count_huge.cmf", "record count"},
    {"dir_cut.cmf", "shorter than its 16-byte head"},
    {"dtype_99.cmf", "unknown dtype id 99"},
    {"empty.cmf", "shorter than the 128-byte envelope"},
    {"feature_bit30.cmf", "unknown required feature bit 30"},
    {"file_cut.cmf", "data section (4096 + 71424) ends past the end of the file"},
    {"header_hash.cmf", "header section does not match its hash"},
    {"header_off_wraps.cmf", "header section's offset + length"},
    {"header_past_eof.cmf", "header section (128 + 84693) ends past the end of the file"},
    {"json_broken.cmf", "header is not valid JSON"},
    {"json_layers_huge.cmf", "arch.num_layers is 4000000000"},
    {"json_negative_hidden.cmf", "arch.hidden_size is -64"},
    {"lonely-00001-of-00002.cmf", "shard 2 of 2 is missing"},
    {"magic.cmf", "wrong magic"},
    {"masks_count.cmf", "count of 7 disagrees with its metadata"},
    {"name_past_pool.cmf", "name outside the pool"},
    {"name_twice.cmf", "two tensors have one name"},
    {"ndim_7.cmf", "more than 6 dimensions"},
    {"offset_past_data.cmf", "ends past the data section"},
    {"offset_unaligned.cmf", "not a multiple of 64"},
    {"q1s_count.cmf", "outlier count"},
    {"shape_product_wraps.cmf", "product of dimensions overflows"},
    {"shape_rows_doubled.cmf", "byte length"},
    {"tensor_hash.cmf", "payload of 'model.layers.0.mlp.gate_proj.weight' does not match its hash"},
    {"tensors_overlap.cmf", "share bytes"},
    {"vbit_width_11.cmf", "row bit width 11"},
    {"version_1.cmf", "unsupported version 1"},
};

TEST(CmfBadFixtures, RefusedWithTheirReason) {
  CORTIQ_NEED_FIXTURES();
  const std::string folder = test::fixtures() + "/models/bad/";
  const std::vector<uint8_t> text = test::read_bytes(folder + "manifest.json");
  const Json manifest = Json::parse(text, nullptr, false);
  ASSERT_TRUE(manifest.is_array());
  for (const Json& row : manifest) {
    const std::string file = row["file"];
    const std::string message = open_and_verify(folder + file);
    if (row["stage"] == "load") {
      EXPECT_EQ(message, "") << file << " is a sound container";
      continue;
    }
    ASSERT_TRUE(kReasons.contains(file)) << file;
    EXPECT_THAT(message, HasSubstr(kReasons.at(file)));
    EXPECT_THAT(message, HasSubstr(file));
    EXPECT_TRUE(test::is_one_sentence(message));
    if (row["stage"] == "verify")
      EXPECT_TRUE(CmfFile::open(folder + file).ok()) << file;
  }
}

/// A sample file with its header text replaced, hashes repaired.
class EditedHeader : public ::testing::Test {
protected:
  std::string verdict(const Json& header, uint32_t features = 1) {
    const std::string text = header.dump();
    EXPECT_TRUE(CmfWriter(minimal_header()).write(folder_ / "a.cmf").ok());
    std::vector<uint8_t> bytes = test::read_bytes(folder_ / "a.cmf");
    const uint64_t place[2] = {bytes.size(), text.size()};
    const uint64_t hash = hash64(test::bytes_of(text));
    bytes.insert(bytes.end(), text.begin(), text.end());
    std::memcpy(bytes.data() + 12, &features, 4);
    std::memcpy(bytes.data() + 16, place, 16);
    std::memcpy(bytes.data() + 112, &hash, 8);
    test::write_bytes(folder_ / "a.cmf", bytes);
    return open_and_verify(folder_ / "a.cmf");
  }
  static Json with(const char* key, Json value) {
    Json header = minimal_header();
    header[key] = std::move(value);
    return header;
  }

  test::ScratchFolder folder_;
};

TEST_F(EditedHeader, FeatureBitsAgreeWithContent) {
  EXPECT_EQ(verdict(minimal_header()), "");
  EXPECT_EQ(verdict(minimal_header(), 0), "") << "bit 0 is not insisted on";
  EXPECT_THAT(verdict(minimal_header(), 1 | 1 << 10), HasSubstr("feature bit 10 is set, but the header lacks router"));
  EXPECT_THAT(verdict(with("router", Json::object())), HasSubstr("feature bit 10 is clear"));
  EXPECT_THAT(verdict(with("router", Json::object()), 1 | 1 << 10), HasSubstr("router.version is missing"));
  EXPECT_THAT(verdict(minimal_header(), 1 | 1 << 13), HasSubstr("genome"));
  EXPECT_THAT(verdict(minimal_header(), 1 | 1 << 15), HasSubstr("arch.block_diffusion"));
  EXPECT_THAT(verdict(minimal_header(), 1 | 1 << 3), HasSubstr("unknown required feature bit 3:"));
  Json decision = minimal_header();
  decision["arch"]["arch_name"] = "cortiq-decision-x";
  EXPECT_THAT(verdict(decision), HasSubstr("feature bit 11 is clear"));
  EXPECT_EQ(verdict(decision, 1 | 1 << 11), "");
  EXPECT_THAT(CmfFile::open(folder_ / "a.cmf")->check_runnable().message(), HasSubstr("decision model"));
}

TEST_F(EditedHeader, FieldsHaveTheirTypes) {
  EXPECT_THAT(verdict(with("quant_type", "Q9")), HasSubstr("header.quant_type is 'Q9'"));
  EXPECT_THAT(verdict(with("arch", nullptr)), HasSubstr("arch is not a JSON object"));
  EXPECT_THAT(verdict(with("skills", {{{"name", "x"}}})), HasSubstr("skills[0].id is missing"));
  EXPECT_THAT(verdict(with("skills", {{{"id", "x"}, {"bound", Json::object()}}})), HasSubstr("records with a kind"));
  EXPECT_THAT(verdict(with("section_hashes", {{"vocab", 3}})), HasSubstr("section_hashes.vocab is 3"));
  EXPECT_THAT(verdict(with("segments", {{{"kind", "skill"}, {"id", "x"}, {"data_start", 1}, {"data_end", 2}}})),
              HasSubstr("segments[0] covers 1 to 2 of a data section of 0 bytes"));
  EXPECT_THAT(verdict(with("tokenizer_config", {{"eos_token_ids", "x"}})),
              HasSubstr("tokenizer_config.eos_token_ids is 'x'"));
  EXPECT_EQ(verdict(with("something_new", {1, 2})), "") << "unknown fields are ignored";
  Json header = minimal_header();
  header["arch"]["num_layers"] = 2000000;
  EXPECT_THAT(verdict(header), HasSubstr("arch.num_layers is 2000000, far beyond the 0 tensors"));
}

TEST_F(EditedHeader, ShardsNeedTheirNames) {
  EXPECT_THAT(verdict(with("shard", {{"no", 1}, {"count", 2}})), HasSubstr("does not end in -00001-of-00002.cmf"));
  EXPECT_THAT(verdict(with("shard", {{"no", 2}, {"count", 2}})), HasSubstr("open the first"));
  EXPECT_THAT(verdict(with("shard", {{"no", 3}, {"count", 2}})), HasSubstr("shard 3 of 2"));
  EXPECT_THAT(verdict(with("shard", {{"no", 1}, {"count", 0}})), HasSubstr("shard 1 of 0"));
}

TEST(CmfShardPath, FollowsTheTag) {
  EXPECT_EQ(cmf_shard_path("d/m-00001-of-00003.cmf", 2, 3), "d/m-00002-of-00003.cmf");
  EXPECT_EQ(cmf_shard_path("d/m.cmf", 2, 3), "");
}

} // namespace
} // namespace cortiq::formats
