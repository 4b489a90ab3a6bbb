#pragma once

// JSON from files: parsed without exceptions, bounded in size and depth. Sources that look inside a value include
// <nlohmann/json.hpp> themselves, which costs a second and a half each.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "formats/status.h"

namespace cortiq::formats {

using Json = nlohmann::json;

/// Parses `text`; `what` names it in the message ("header of 'm.cmf'"). Refuses text that is not JSON or not UTF-8
/// (with the byte where it stops being so), text over 1 GiB, nesting deeper than 128 and objects that name a key twice.
StatusOr<Json> parse_json(std::string_view text, const std::string& what);

} // namespace cortiq::formats
