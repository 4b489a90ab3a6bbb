#include "tools/cortiq-serve/openai/wording.h"

#include <algorithm>
#include <ctime>
#include <sodium.h>

namespace cortiq::serve {

const char* finish_reason(const Finish& finish) {
  switch (finish.outcome) {
  case Outcome::kStop:
    return "stop";
  case Outcome::kLength:
    return "length";
  case Outcome::kCancelled:
  case Outcome::kFailed:
    return "cancelled";
  }
  return "";
}

Json usage_json(const std::vector<Finish>& finishes, bool same_prompt) {
  uint64_t prompt = 0, kept = 0, generated = 0;
  for (const Finish& finish : finishes) {
    const bool first = &finish == &finishes.front();
    if (first || !same_prompt) {
      prompt += finish.prompt_tokens;
      kept += finish.kept_tokens;
    } else {
      kept = std::min(kept, finish.kept_tokens); // what the others found was computed for one of them
    }
    generated += finish.generated_tokens;
  }
  return {{"prompt_tokens", prompt},
          {"completion_tokens", generated},
          {"total_tokens", prompt + generated},
          {"prompt_tokens_details", {{"cached_tokens", kept}}}};
}

std::vector<Finish> finishes_of(const std::vector<Answered>& choices) {
  std::vector<Finish> out;
  for (const Answered& choice : choices)
    out.push_back(choice.finish);
  return out;
}

int64_t now_seconds() {
  return static_cast<int64_t>(std::time(nullptr));
}

std::string new_id(const char* prefix) {
  constexpr std::string_view kCharacters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string out = prefix;
  for (int i = 0; i < 24; ++i)
    out += kCharacters[randombytes_uniform(kCharacters.size())];
  return out;
}

} // namespace cortiq::serve
