// Encoders against the reference encoder. Its inputs are not among the fixtures, but two things are: models that it
// wrote from one checkpoint in several codecs, one of them f16; and payloads whose decoded values are inputs that a
// rule of absolute maxima has to reproduce.

#include <algorithm>
#include <gtest/gtest.h>

#include "formats/cmf/cmf_file.h"
#include "formats/encode/encoder.h"
#include "test/unit/codec/golden.h"
#include "test/unit/encode/samples.h"

namespace cortiq::formats {
namespace {

/// How much more squared error than the reference encoder's is allowed.
constexpr double kMargin = 1.01;

CmfFile open_model(const std::string& name) {
  StatusOr<CmfFile> file = CmfFile::open(std::string(std::getenv("CORTIQ_FIXTURES")) + "/models/" + name);
  if (!file.ok())
    ADD_FAILURE() << file.status().message();
  return *std::move(file);
}

struct Pair {
  const char* plain; ///< the checkpoint in f16
  const char* quantized;
};

class AgainstReference : public ::testing::TestWithParam<Pair> {};

TEST_P(AgainstReference, ErrorIsNoLarger) {
  if (const char* fixtures = std::getenv("CORTIQ_FIXTURES"); !fixtures || !*fixtures)
    GTEST_SKIP() << "CORTIQ_FIXTURES does not name a folder with models/";
  const CmfFile plain = open_model(GetParam().plain);
  const CmfFile quantized = open_model(GetParam().quantized);
  int compared = 0;
  double ours = 0, theirs = 0;
  for (const Tensor& tensor : quantized.tensors()) {
    const Encoder* encoder = find_encoder(tensor.codec->id);
    const Tensor* source = plain.find(tensor.name);
    if (!encoder || !source || tensor.shape.size() != 2 || tensor.codec->id == CodecId::kF16)
      continue;
    const std::vector<float> values = *decode_tensor(*source);
    const StatusOr<std::vector<uint8_t>> payload = encode_matrix(*encoder, values, tensor.rows(), tensor.cols());
    ASSERT_TRUE(payload.ok()) << payload.status().message();
    const double mine = squared_error(values, decode(*tensor.codec, *payload, tensor.rows(), tensor.cols()));
    const double reference = squared_error(values, *decode_tensor(tensor));
    EXPECT_LE(mine, kMargin * reference) << tensor.name << " " << tensor.codec->name;
    ours += mine;
    theirs += reference;
    ++compared;
  }
  EXPECT_GT(compared, 0);
  RecordProperty("squared_error_ratio", std::to_string(ours / theirs));
}

INSTANTIATE_TEST_SUITE_P(Models, AgainstReference,
                         ::testing::Values(Pair{"llama-f16.cmf", "llama-q8.cmf"},
                                           Pair{"llama-f16.cmf", "llama-mixed.cmf"},
                                           Pair{"qwen3_moe-f16.cmf", "qwen3_moe-fp4.cmf"},
                                           Pair{"qwen3_moe-f16.cmf", "qwen3_moe-q2tp.cmf"},
                                           Pair{"qwen3_moe-f16.cmf", "qwen3_moe-q4tp.cmf"},
                                           Pair{"qwen3_moe-f16.cmf", "qwen3_moe-q8_2f.cmf"}),
                         [](const auto& info) {
                           std::string name = info.param.quantized;
                           for (char& c : name)
                             c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

/// Codecs whose rule finds a scale again in what it made of it.
constexpr const char* kIdempotent[] = {"f32", "f16", "bf16", "q8_row", "q4_block", "q4_tiled", "q1",
                                       "q1g", "q1s", "q1t",  "mxfp4",  "vbit",     "vbit_ro"};

TEST(AgainstReference, DecodedGoldenValuesEncodeToTheSameBytes) {
  CORTIQ_GOLDEN_OR_SKIP(golden);
  int compared = 0;
  for (const auto& c : golden.manifest["cases"]) {
    const std::string scheme = c["scheme"], kind = c["case"];
    if (c["family"] != "cmf" || !kind.starts_with("enc") || kind == "enc_ef" || kind == "enc_out" ||
        std::find(std::begin(kIdempotent), std::end(kIdempotent), scheme) == std::end(kIdempotent))
      continue;
    const std::vector<float> values = golden.words<float>(c["files"]["f32"]["file"]);
    const Codec* codec = find_codec(scheme);
    ASSERT_NE(codec, nullptr) << scheme;
    const uint64_t rows = c["rows"], cols = c["cols"];
    const StatusOr<std::vector<uint8_t>> payload = encode_matrix(*find_encoder(codec->id), values, rows, cols);
    ASSERT_TRUE(payload.ok()) << c["name"] << " " << payload.status().message();
    EXPECT_EQ(*payload, golden.bytes(c["files"]["packed"]["file"])) << c["name"];
    ++compared;
  }
  EXPECT_GT(compared, 8);
}

} // namespace
} // namespace cortiq::formats
