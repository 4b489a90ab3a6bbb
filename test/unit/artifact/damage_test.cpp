// Damaged artifacts: refused in one sentence, or run unharmed. Meant to be run under the address sanitizer too.

#include <cstring>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <iterator>
#include <random>

#include "formats/artifact/artifact_file.h"
#include "formats/artifact/artifact_hash.h"
#include "formats/file_guard.h"
#include "runtime/session/session.h"
#include "test/unit/runtime/temporary_folder.h"
#include "test/unit/runtime/tiny_model.h"

namespace cortiq::runtime {
namespace {

using formats::ArtifactHeader;
using formats::ArtifactSection;
using ::testing::HasSubstr;

constexpr int kFlips = 2000;

/// With and without a second target.
class Damage : public ::testing::TestWithParam<bool> {
protected:
  void SetUp() override {
    test::TinyModel tiny;
    if (GetParam())
      tiny.targets = {"plain", "better"};
    ASSERT_TRUE(tiny.write(folder_.file("whole.cqa")).ok());
    std::ifstream file(folder_.file("whole.cqa"), std::ios::binary);
    whole_ = {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::memcpy(&header_, whole_.data() + formats::kHeaderOffset, sizeof(header_));
  }

  formats::ArtifactExtent section(ArtifactSection s) const { return header_.sections[static_cast<uint32_t>(s)]; }

  Status load(const std::vector<uint8_t>& bytes) {
    std::ofstream(folder_.file("m.cqa"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const auto model = Model::load(folder_.file("m.cqa"));
    if (!model.ok())
      return model.status();
    const auto session = Session::create(*model, {.threads = 1});
    if (!session.ok())
      return session.status();
    const std::vector<uint32_t> tokens = {1, 2, 3, 4, 5};
    const auto logits = (*session)->forward(tokens, true);
    // Reading every logit is part of the trial: they must be inside the arena.
    float sum = 0;
    if (logits.ok())
      for (const float value : *logits)
        sum += value;
    kept_ = sum;
    return logits.status();
  }

  /// Gives damaged bytes the hashes of whole ones, so that the checks behind the hashes are reached.
  static void rehash(std::vector<uint8_t>& bytes) {
    ArtifactHeader header;
    std::memcpy(&header, bytes.data() + formats::kHeaderOffset, sizeof(header));
    const uint64_t end = header.sections[static_cast<uint32_t>(ArtifactSection::kWeights)].offset;
    if (end >= formats::kArtifactPage && end <= bytes.size()) {
      const auto image =
          formats::hash256(std::span(bytes).subspan(formats::kArtifactPage, end - formats::kArtifactPage));
      std::memcpy(bytes.data() + formats::kHeaderOffset + offsetof(ArtifactHeader, image_hash), image.data(),
                  image.size());
    }
    const auto page = formats::header_page_hash(std::span(bytes).first(formats::kArtifactPage));
    std::memcpy(bytes.data() + formats::kHeaderOffset + offsetof(ArtifactHeader, header_hash), page.data(),
                page.size());
  }

  static void expect_sentence(const Status& status, const std::string& what) {
    EXPECT_EQ(exit_code(status), 2) << what << ": " << status.message();
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_GT(status.message().size(), 10u);
  }

  test::TemporaryFolder folder_;
  std::vector<uint8_t> whole_;
  ArtifactHeader header_;
  volatile float kept_ = 0;
};

TEST_P(Damage, WholeFileRuns) {
  const Status status = load(whole_);
  EXPECT_TRUE(status.ok()) << status.message();
  rehash(whole_);
  EXPECT_TRUE(load(whole_).ok());
}

TEST_P(Damage, AnyFlippedByteBeforeTheWeightsIsRefused) {
  std::mt19937_64 random(1);
  const uint64_t end = section(ArtifactSection::kWeights).offset;
  for (int i = 0; i < kFlips; ++i) {
    std::vector<uint8_t> bytes = whole_;
    const uint64_t at = random() % end;
    bytes[at] ^= static_cast<uint8_t>(1 + random() % 255);
    const Status status = load(bytes);
    ASSERT_FALSE(status.ok()) << "byte " << at;
    expect_sentence(status, "byte " + std::to_string(at));
  }
}

TEST_P(Damage, FlippedBytesWithRightHashesAreRefusedOrRunUnharmed) {
  std::mt19937_64 random(2);
  const formats::ArtifactExtent places[] = {{0, formats::kHeaderOffset + sizeof(ArtifactHeader)},
                                            section(ArtifactSection::kManifest),
                                            section(ArtifactSection::kProgram)};
  int refused = 0;
  for (int i = 0; i < kFlips; ++i) {
    std::vector<uint8_t> bytes = whole_;
    const formats::ArtifactExtent& place = places[i % 3];
    const uint64_t at = place.offset + random() % place.bytes;
    bytes[at] ^= static_cast<uint8_t>(1u << random() % 8);
    rehash(bytes);
    const Status status = load(bytes);
    if (status.ok())
      continue;
    ++refused;
    expect_sentence(status, "byte " + std::to_string(at));
  }
  EXPECT_GT(refused, kFlips / 4);
}

TEST_P(Damage, EveryTruncationIsRefused) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    std::vector<uint8_t> bytes = whole_;
    bytes.resize(i < 20 ? static_cast<size_t>(i) * 64 : random() % whole_.size());
    const Status status = load(bytes);
    ASSERT_FALSE(status.ok()) << bytes.size() << " bytes";
    expect_sentence(status, std::to_string(bytes.size()) + " bytes");
  }
  std::vector<uint8_t> longer = whole_;
  longer.push_back(0);
  EXPECT_THAT(load(longer).message(), HasSubstr("extended"));
}

TEST_P(Damage, ForeignMachineSchemaAndFeaturesAreNamed) {
  std::vector<uint8_t> bytes = whole_;
  const uint32_t machine = EM_AARCH64, version = 99;
  std::memcpy(bytes.data() + formats::kHeaderOffset + offsetof(ArtifactHeader, machine), &machine, 4);
  rehash(bytes);
  EXPECT_THAT(load(bytes).message(), HasSubstr("AArch64"));
  bytes = whole_;
  std::memcpy(bytes.data() + formats::kHeaderOffset + offsetof(ArtifactHeader, schema_version), &version, 4);
  EXPECT_THAT(load(bytes).message(), HasSubstr("version 99"));
}

using DamageDeathTest = Damage;

/// Runs `path` and cuts it at `size` bytes in between.
void run_and_cut(const std::string& path, uint64_t size) {
  formats::install_file_guard("a-tool");
  const auto model = Model::load(path);
  if (!model.ok())
    std::exit(3);
  const auto session = Session::create(*model, {.threads = 4});
  std::filesystem::resize_file(path, size);
  const std::vector<uint32_t> tokens = {1, 2, 3, 4, 5};
  std::exit((*session)->forward(tokens, true).ok() ? 4 : 3);
}

TEST_P(DamageDeathTest, AFileCutWhileItRunsEndsWithASentence) {
  for (const auto place : {ArtifactSection::kWeights, ArtifactSection::kCode}) {
    const std::string path = folder_.file(place == ArtifactSection::kCode ? "code.cqa" : "weights.cqa");
    std::filesystem::copy_file(folder_.file("whole.cqa"), path);
    EXPECT_EXIT(run_and_cut(path, section(place).offset / 4096 * 4096), ::testing::ExitedWithCode(2),
                "^a-tool: '.*.cqa' became shorter[^\n]*\n$");
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Damage, ::testing::Bool());
INSTANTIATE_TEST_SUITE_P(Targets, DamageDeathTest, ::testing::Bool());

TEST(Missing, FeaturesAreNamedWithTheRemedy) {
  test::TemporaryFolder folder;
  test::ArtifactBuilder builder(1);
  const uint32_t x = builder.slot(4), y = builder.slot(4);
  artifact::MatmulOpT op;
  op.parts.push_back(std::make_unique<artifact::MatmulPartT>(
      builder.matmul(builder.matrix("w", 4, 4, std::vector<float>(16, 1)), x, y)));
  builder.stage(std::move(op));
  builder.program.logits = y;
  builder.manifest.vocab = 4;
  builder.manifest.max_context = 1;
  builder.manifest.source_name = "some model.gguf";
  builder.manifest.features = {"avx2", "amx_fp16"};
  ASSERT_TRUE(builder.write(folder.file("m.cqa")).ok());
  const auto model = Model::load(folder.file("m.cqa"));
  if (model.ok())
    GTEST_SKIP() << "this machine has amx_fp16";
  EXPECT_THAT(model.status().message(),
              ::testing::AllOf(HasSubstr("amx_fp16"), HasSubstr("some model.gguf"), HasSubstr("--target native")));
  EXPECT_EQ(exit_code(model.status()), 2);
}

} // namespace
} // namespace cortiq::runtime
