#include "runtime/text/gguf_pretokenizers.h"

#include <algorithm>

namespace cortiq::runtime::text {
namespace {

// Expressions that several names share, as the published tokenizers write them.
#define CORTIQ_CONTRACTION "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define CORTIQ_SPACES R"(\s*[\r\n]+|\s+(?!\S)|\s+)"
#define CORTIQ_CJK R"([一-龥぀-ゟ゠-ヿ]+)"

constexpr std::string_view kGpt2 = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    CORTIQ_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" CORTIQ_SPACES;
constexpr std::string_view kLlama3AnyNumber =
    CORTIQ_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|)" CORTIQ_SPACES;
constexpr std::string_view kQwen2 =
    CORTIQ_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" CORTIQ_SPACES;
constexpr std::string_view kQwen2NoContraction =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)" CORTIQ_SPACES;
constexpr std::string_view kQwen35 =
    CORTIQ_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" CORTIQ_SPACES;
constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    CORTIQ_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|)" CORTIQ_SPACES;
constexpr std::string_view kJais2 =
    CORTIQ_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
                       R"(|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S))"
                       R"(|\s{8}(?!\S)|\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr std::string_view kExaoneMoe =
    CORTIQ_CONTRACTION R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?)"
                       R"(|\s*[\r\n]|\s+(?!\S)|\s+)";

// o200k and its relatives: words by case, where U and l stand for what may begin and end one.
#define CORTIQ_UPPER R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])"
#define CORTIQ_LOWER R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])"
#define CORTIQ_CASED_WORDS(upper, lower, suffix)                                                                       \
  R"([^\r\n\p{L}\p{N}]?)" upper "*" lower "+" suffix R"(|[^\r\n\p{L}\p{N}]?)" upper "+" lower "*" suffix
#define CORTIQ_O200K_TAIL R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*|)" CORTIQ_SPACES
constexpr std::string_view kO200k =
    CORTIQ_CASED_WORDS(CORTIQ_UPPER, CORTIQ_LOWER, CORTIQ_CONTRACTION "?") R"(|\p{N}{1,3})" CORTIQ_O200K_TAIL;
constexpr std::string_view kO200kOneDigit =
    CORTIQ_CASED_WORDS(CORTIQ_UPPER, CORTIQ_LOWER, CORTIQ_CONTRACTION "?") R"(|\p{N})" CORTIQ_O200K_TAIL;
constexpr std::string_view kTekken = CORTIQ_CASED_WORDS(CORTIQ_UPPER, CORTIQ_LOWER, "") R"(|\p{N})" CORTIQ_O200K_TAIL;
constexpr std::string_view kKimi =
    CORTIQ_CASED_WORDS(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])", R"([\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]])",
                       CORTIQ_CONTRACTION "?") R"(|\p{N}{1,3})" CORTIQ_O200K_TAIL;

constexpr std::string_view kDeepseek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|)" CORTIQ_SPACES;
constexpr std::string_view kSpark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?…。，、।۔،)]+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kThreeDigits = R"([0-9][0-9][0-9])";
constexpr std::string_view kDigitsFromRight = R"(\d{1,3}(?=(?:\d{3})*\b))";
constexpr std::string_view kLines = R"([^\n]+|[\n]+)";

// deepseek-llm lists the cased letters of Latin, Greek, Cyrillic, Armenian and their like by range. Georgian's second
// case came later than that list.
constexpr std::string_view kCasedLetters = R"(\s?[\p{Lu}\p{Ll}\p{Lt}&&[^ა-ჿ]]+)";
constexpr std::string_view kDeepseekMarks = R"(\s?[!-/:-~！-／：-～‘-‟　-。]+)";
constexpr std::string_view kDeepseekCjk = R"([一-龥ࠀ-一가-퟿]+)";

std::vector<GgufPreTokenizer> build_table() {
  using P = GgufPreTokenizer;
  std::vector<P> rows;
  auto add = [&rows](std::initializer_list<std::string_view> names, uint32_t flags,
                     std::initializer_list<std::string_view> expressions) {
    for (std::string_view name : names)
      rows.push_back({name, flags, expressions});
  };
  add({"", "default"}, 0, {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", kThreeDigits});
  add({"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"},
      P::kIgnoreMerges | P::kAddBos, {kLlama3});
  add({"dbrx", "smaug-bpe", "chatglm-bpe"}, 0, {kLlama3});
  add({"glm4", "glm5"}, P::kIgnoreMerges, {kLlama3});
  add({"qwen2", "deepseek-r1-qwen"}, P::kNfc, {kQwen2});
  add({"hunyuan", "solar-open", "kormo", "f2llmv2", "grok-2", "stablelm2", "megrez"}, 0, {kQwen2});
  add({"qwen35"}, P::kNfc, {kQwen35});
  add({"gpt-2", "phi-2", "jina-es", "jina-de", "jina-v2-es", "jina-v2-de", "gigachat", "mellum", "modern-bert",
       "a.x-4.0", "exaone4", "mpt", "olmo", "jais", "trillion", "granite-docling"},
      0, {kGpt2});
  add({"jina-v1-en", "jina-v2-code", "roberta-bpe"}, P::kAddSep, {kGpt2});
  add({"starcoder", "refact", "codeshell", "exaone", "minerva-7b", "mellum2", "command-r", "smollm"}, 0,
      {kDigit, kGpt2});
  add({"falcon"}, 0, {R"([\p{P}\$\+<=>\^~\|\x60]+)", kGpt2, kThreeDigits});
  add({"deepseek-llm"}, 0, {R"([\r\n])", kCasedLetters, kDeepseekMarks, R"(\s+$)", kDeepseekCjk, R"(\p{N}+)"});
  add({"deepseek-coder"}, 0, {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjk, kDigit});
  add({"deepseek-v3", "hunyuan-dense", "joyai-llm", "hy_v4"}, 0, {R"(\p{N}{1,3})", CORTIQ_CJK, kDeepseek3});
  add({"gpt-4o", "llama4", "kanana2", "talkie", "minimax-m2"}, 0, {kO200k});
  add({"tekken"}, P::kIgnoreMerges | P::kAddBos, {kTekken});
  add({"youtu"}, P::kIgnoreMerges,
      {R"([가-힣ㄱ-ㆎ]+|[！…“”‘’—：；，、-〿︰-﹏]+|[ㄅ-ㄯ]+|[一-龥぀-ゟ゠-ヿ]+)",
       kO200kOneDigit});
  add({"granite-embed-multi-97m"}, P::kIgnoreMerges, {kO200k});
  add({"tiny_aya", "cohere2moe"}, 0, {kDigitsFromRight, kO200k});
  add({"chameleon"}, P::kAddBos,
      {R"(<sentinel:[0-9]+>)", R"((IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z)", R"(([\t\n]|    |  ))", kDigit,
       R"([\p{P}!-/:-@\[-\x60{-~])", kGpt2});
  add({"kimi-k2"}, 0, {R"(\p{Han}+)", kKimi});
  add({"bloom", "gpt3-finnish", "poro-chat"}, 0, {kBloom});
  add({"viking"}, 0, {kBloom, kDigit});
  add({"jais-2"}, 0, {kJais2});
  add({"superbpe"}, 0, {R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"});
  add({"bailingmoe", "bailingmoe2", "llada-moe"}, 0, {kBailing});
  add({"seed-coder"}, 0, {kSeedCoder});
  add({"exaone-moe"}, 0, {kExaoneMoe});
  add({"minicpm5"}, P::kIgnoreMerges, {R"(\p{N}{1,3})", kLlama3AnyNumber});
  add({"laguna"}, 0, {kLines, kQwen2});
  add({"afmoe"}, 0,
      {kDigitsFromRight, R"([\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]+)",
       kDeepseek3});
  add({"spark2_5"}, 0, {R"(\p{N}{1,3})", CORTIQ_CJK, kSpark, kDigit});
  add({"ufakzeka"}, 0, {kQwen2NoContraction});
  add({"gemma4", "granite-embed-multi-311m", "sarvam-moe"}, P::kRaw, {kLines});
  std::sort(rows.begin(), rows.end(), [](const P& a, const P& b) { return a.name < b.name; });
  return rows;
}

const std::vector<GgufPreTokenizer>& table() {
  static const std::vector<GgufPreTokenizer> rows = build_table();
  return rows;
}

} // namespace

const GgufPreTokenizer* find_gguf_pre_tokenizer(std::string_view name) {
  auto found = std::lower_bound(table().begin(), table().end(), name,
                                [](const GgufPreTokenizer& row, std::string_view wanted) { return row.name < wanted; });
  return found != table().end() && found->name == name ? &*found : nullptr;
}

std::vector<std::string_view> gguf_pre_tokenizer_names() {
  std::vector<std::string_view> names;
  for (const GgufPreTokenizer& row : table())
    names.push_back(row.name);
  return names;
}

} // namespace cortiq::runtime::text
