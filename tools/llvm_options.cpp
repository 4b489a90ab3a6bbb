#include "tools/llvm_options.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
namespace json = llvm::json;

namespace cortiq::tools {
namespace {

/// Of "embed|none" the words that may be said.
json::Array choices(llvm::StringRef value) {
  json::Array out;
  if (value.contains('|'))
    for (const llvm::StringRef word : llvm::split(value, '|'))
      out.push_back(word);
  return out;
}

json::Object describe(const cl::Option& option) {
  const bool takes = !option.ValueStr.empty() || option.getValueExpectedFlag() == cl::ValueRequired;
  return json::Object{
      {"names", json::Array{(option.ArgStr.size() == 1 ? "-" : "--") + option.ArgStr.str()}},
      {"value", !takes                    ? llvm::StringRef()
                : option.ValueStr.empty() ? llvm::StringRef("VALUE")
                                          : option.ValueStr},
      {"choices", choices(option.ValueStr)},
      {"default", ""},
      {"description", option.HelpStr},
      {"group", option.Categories.empty() ? llvm::StringRef("Options") : option.Categories.front()->getName()}};
}

} // namespace

bool asks_for_description(int argc, const char* const* argv) {
  return argc == 2 && std::string_view(argv[1]) == "--help-json";
}

void describe_llvm_options(std::string_view program, std::string_view overview) {
  cl::SubCommand& all = cl::SubCommand::getTopLevel();
  std::vector<const cl::Option*> options;
  for (const auto& entry : all.OptionsMap)
    if (entry.second->getOptionHiddenFlag() == cl::NotHidden && entry.first() == entry.second->ArgStr)
      options.push_back(entry.second);
  std::sort(options.begin(), options.end(),
            [](const cl::Option* a, const cl::Option* b) { return a->ArgStr < b->ArgStr; });
  json::Array rows, positionals;
  for (const cl::Option* option : options)
    rows.push_back(describe(*option));
  for (const cl::Option* option : all.PositionalOpts)
    positionals.push_back(json::Object{{"name", option->ValueStr.empty() ? option->HelpStr : option->ValueStr},
                                       {"description", option->HelpStr},
                                       {"required", option->getNumOccurrencesFlag() == cl::Required}});
  const auto [first, rest] = llvm::StringRef(overview.data(), overview.size()).split('\n');
  json::Object out{{"name", llvm::StringRef(program.data(), program.size())},
                   {"description", first},
                   {"footer", rest.trim("\n")},
                   {"positionals", std::move(positionals)},
                   {"options", std::move(rows)},
                   {"commands", json::Array{}}};
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(std::move(out));
  std::printf("%s\n", text.c_str());
}

} // namespace cortiq::tools
