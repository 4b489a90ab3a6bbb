// A chat template; what follows a zero byte are its variables.

#include <algorithm>
#include <string_view>

#include "runtime/text/chat_template.h"
#include "test/fuzz/memory_file.h"

using namespace cortiq;

namespace {

constexpr std::string_view kVariables =
    R"({"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hi\n there "},)"
    R"({"role":"assistant","content":"<think>\nno\n</think>Yes.","tool_calls":[{"type":"function","function":)"
    R"({"name":"add","arguments":{"a":1,"b":[2.5,null,true]}}}]},{"role":"tool","content":"3"}],)"
    R"("tools":[{"type":"function","function":{"name":"add","description":"adds","parameters":{"type":"object"}}}],)"
    R"("add_generation_prompt":true,"bos_token":"<s>","eos_token":"</s>","enable_thinking":false})";
constexpr std::string_view kNow = "2031-03-07T08:09:10";

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = std::min(input.find('\0'), size);
  const std::string_view variables = end < size ? input.substr(end + 1) : kVariables;
  const StatusOr<std::string> text = runtime::text::render_chat_template(input.substr(0, end), variables, kNow);
  if (!text.ok())
    fuzz::require(text.status().code() != StatusCode::kInternal, "a refusal that blames the program");
  return 0;
}
