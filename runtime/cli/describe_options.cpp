#include "runtime/cli/describe_options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

namespace cortiq::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

/// Of "TEXT:{f32,f16,q8}" what may be said, and what it is called otherwise.
void describe_value(const std::string& type, Json& out) {
  out["choices"] = Json::array();
  const size_t open = type.find('{'), close = type.rfind('}');
  if (open != std::string::npos && close != std::string::npos && open < close)
    for (size_t at = open + 1; at < close;) {
      const size_t end = std::min(type.find(',', at), close);
      out["choices"].push_back(type.substr(at, end - at));
      at = end + 1;
    }
  std::string name = type.substr(0, type.find(':'));
  out["value"] = name.empty() && !out["choices"].empty() ? "WORD" : name;
}

void describe_into(const CLI::App& app, Json& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty() || (app.get_name().empty() && option == app.get_help_ptr()))
      continue; // hidden, or a group's own --help
    if (option->get_positional()) {
      out["positionals"].push_back({{"name", option->get_single_name()},
                                    {"description", option->get_description()},
                                    {"required", option->get_required()}});
      continue;
    }
    Json row;
    row["names"] = Json::array();
    for (const std::string& name : option->get_snames())
      row["names"].push_back("-" + name);
    for (const std::string& name : option->get_lnames())
      row["names"].push_back("--" + name);
    describe_value(option->get_items_expected_max() == 0 ? "" : option->get_type_name(), row);
    row["default"] = option->get_default_str();
    row["description"] = option->get_description();
    row["group"] = option->get_group();
    out["options"].push_back(std::move(row));
  }
}

Json describe(const CLI::App& app) {
  Json out = {{"name", app.get_name()},     {"description", app.get_description()},
              {"footer", app.get_footer()}, {"positionals", Json::array()},
              {"options", Json::array()},   {"commands", Json::array()}};
  describe_into(app, out);
  for (const CLI::App* part : app.get_subcommands({})) {
    if (part->get_name().empty())
      describe_into(*part, out); // a group of options, not a command
    else
      out["commands"].push_back(describe(*part));
  }
  return out;
}

} // namespace

std::string describe_options(const CLI::App& app) {
  return describe(app).dump(1, ' ', false, Json::error_handler_t::replace);
}

bool described_options(const CLI::App& app, int argc, const char* const* argv) {
  if (argc != 2 || std::string_view(argv[1]) != "--help-json")
    return false;
  std::printf("%s\n", describe_options(app).c_str());
  return true;
}

} // namespace cortiq::runtime::cli
