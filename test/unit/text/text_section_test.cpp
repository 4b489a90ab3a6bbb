#include "runtime/text/text_section.h"

#include <gtest/gtest.h>

#include "test/unit/text/tiny_tokenizer.h"

namespace cortiq::runtime::text {
namespace {

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TextConfig full_config() {
  TextConfig config;
  config.bos_id = kTinyBos;
  config.eos_ids = {kTinyBos, kTinyEnd};
  config.pad_id = 0;
  config.suppress_ids = {7};
  config.chat_template = "{{ messages[0].content }} \u00e9\n";
  return config;
}

TEST(TextSectionTest, KeepsConfigurationAndTokenizer) {
  for (const TextConfig& config : {TextConfig{}, full_config()}) {
    auto section = pack_text_section(bytes_of(tiny_tokenizer_json()), config);
    ASSERT_TRUE(section.ok()) << section.status().message();
    auto model = open_text_section(*section);
    ASSERT_TRUE(model.ok()) << model.status().message();
    EXPECT_EQ(model->config, config);
    EXPECT_EQ(*model->tokenizer.encode("hello"), std::vector<uint32_t>{kTinyHello});
  }
}

TEST(TextSectionTest, SameInputSameBytes) {
  EXPECT_EQ(*pack_text_section(bytes_of(tiny_tokenizer_json()), full_config()),
            *pack_text_section(bytes_of(tiny_tokenizer_json()), full_config()));
}

TEST(TextSectionTest, RefusesWhatDoesNotLoad) {
  EXPECT_FALSE(pack_text_section(bytes_of("{}"), TextConfig{}).ok());
  EXPECT_FALSE(pack_text_section({}, TextConfig{}).ok());
}

TEST(TextSectionTest, RefusesDamage) {
  std::vector<uint8_t> section = *pack_text_section(bytes_of(tiny_tokenizer_json()), full_config());
  for (size_t length = 0; length < section.size(); length += 5)
    EXPECT_FALSE(open_text_section(std::span(section).first(length)).ok()) << length;
  for (size_t at = 0; at < 12; ++at) {
    std::vector<uint8_t> damaged = section;
    damaged[at] ^= 0x80;
    EXPECT_FALSE(open_text_section(damaged).ok()) << at;
  }
}

} // namespace
} // namespace cortiq::runtime::text
