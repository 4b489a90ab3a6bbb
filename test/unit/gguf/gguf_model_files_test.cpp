// The model fixtures as containers, and files that are no model.

#include <gmock/gmock.h>

#include "formats/gguf/gguf_file.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

std::string open_as_model(const std::string& path) {
  const StatusOr<GgufFile> file = GgufFile::open(path);
  return file.ok() ? file->check_model().message() : file.status().message();
}

TEST(GgufModelFixtures, AllOpen) {
  CORTIQ_NEED_FIXTURES();
  size_t opened = 0;
  for (const std::string& path : test::files_in(test::fixtures() + "/models-gguf", ".gguf")) {
    if (path.find("-00002-of-") != path.npos)
      continue;
    EXPECT_EQ(open_as_model(path), "");
    ++opened;
  }
  EXPECT_GT(opened, 25u);
}

TEST(GgufBadFixtures, ContainerFaultsAndOtherKindsOfFile) {
  CORTIQ_NEED_FIXTURES();
  const std::string folder = test::fixtures() + "/models-gguf/bad/";
  const std::pair<const char*, std::vector<const char*>> cases[] = {
      {"imatrix.gguf", {"importance matrix (imatrix)"}},
      {"lora_adapter.gguf", {"LoRA adapter for 'llama'"}},
      {"lost-00001-of-00002.gguf", {"lost-00002-of-00002.gguf", "missing"}},
      {"mmproj.gguf", {"projector (clip)"}},
      {"q4_k_row_896.gguf", {"blk.0.ffn_down.weight", "896", "256"}},
  };
  for (const auto& [file, words] : cases) {
    const std::string message = open_as_model(folder + file);
    for (const char* word : words)
      EXPECT_THAT(message, HasSubstr(word)) << file;
    EXPECT_TRUE(test::is_one_sentence(message));
  }
}

TEST(GgufCheckModel, NamesWhatTheFileIs) {
  const test::ScratchFolder folder;
  const auto verdict = [&](const GgufBuilder& builder) {
    builder.write(folder / "a.gguf");
    return open_as_model(folder / "a.gguf");
  };
  const auto of = [](const char* architecture) {
    GgufBuilder out;
    out.text("general.architecture", architecture);
    return out;
  };
  EXPECT_EQ(verdict(of("llama").tensor("token_embd.weight", {32}, 0, 128)), "");
  EXPECT_THAT(verdict(of("llama")), HasSubstr("vocabulary only"));
  EXPECT_THAT(verdict(GgufBuilder().tensor("t", {32}, 0, 128)), HasSubstr("general.architecture is missing"));
  EXPECT_THAT(verdict(of("eagle3").tensor("t", {32}, 0, 128)), HasSubstr("draft model"));
  EXPECT_THAT(verdict(of("flux").tensor("t", {32}, 0, 128)), HasSubstr("image generation"));
  EXPECT_THAT(verdict(of("llama").text("general.type", "mmproj")), HasSubstr("mmproj"));
  EXPECT_THAT(verdict(of("llama").text("general.type", "other")), HasSubstr("general.type 'other'"));
  EXPECT_THAT(
      verdict(of("glm").number("glm.nextn_predict_layers", GgufType::kU32, uint32_t{1}).tensor("t", {4}, 0, 16)),
      HasSubstr("prediction heads only"));
}

} // namespace
} // namespace cortiq::formats
