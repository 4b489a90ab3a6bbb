// Random damage: a reader may accept or refuse a damaged file, but it answers in words and never reads past its bytes.

#include <gtest/gtest.h>

#include "formats/gguf/gguf_file.h"
#include "test/unit/base/damage.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::formats {
namespace {

std::vector<uint8_t> sample() {
  return GgufBuilder()
      .text("general.architecture", "llama")
      .number("general.alignment", GgufType::kU32, uint32_t{32})
      .number("llama.block_count", GgufType::kU32, uint32_t{2})
      .array<int32_t>("llama.heads", GgufType::kI32, {4, 4})
      .array<uint8_t>("llama.flags", GgufType::kBool, {1, 0})
      .texts("tokenizer.ggml.tokens", {"a", "bc", "", "def"})
      .number("llama.eps", GgufType::kF32, 1e-6f)
      .tensor("token_embd.weight", {64, 4}, 8, 272)
      .tensor("norm", {64}, 0, 256)
      .tensor("later", {256, 1}, 34, 54)
      .bytes();
}

/// Uses everything that an opened file hands out, so that a sanitizer sees bad views.
void use(const GgufFile& file) {
  (void)file.check_model();
  size_t touched = 0;
  for (const GgufEntry& entry : file.entries()) {
    const std::string key(entry.key);
    (void)file.get_u64(key);
    (void)file.get_f64(key);
    if (const StatusOr<std::string_view> text = file.get_string(key); text.ok())
      touched += std::string(*text).size();
    if (const auto strings = file.get_string_array(key); strings.ok())
      for (const std::string_view s : *strings)
        touched += std::string(s).size();
    (void)file.get_i64_array(key);
    (void)file.get_per_layer_bool(key, 2);
  }
  for (const Tensor& tensor : file.tensors())
    if (const auto values = decode_tensor(tensor); values.ok())
      touched += values->size();
  EXPECT_GE(touched, 0u);
}

TEST(GgufDamage, AnswersInWords) {
  const std::vector<uint8_t> sound = sample();
  const test::ScratchFolder folder;
  test::write_bytes(folder / "sound.gguf", sound);
  ASSERT_EQ(GgufFile::open(folder / "sound.gguf").status().message(), "");
  test::expect_answers_to_damage(sound, sound.size(), 1, "a.gguf", GgufFile::open, use);
}

} // namespace
} // namespace cortiq::formats
