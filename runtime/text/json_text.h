#pragma once

// Writing JSON as text, for documents with hundreds of thousands of strings.

#include <string>
#include <string_view>

namespace cortiq::runtime::text {

/// Appends `text` (valid UTF-8) as a JSON string.
void append_json_string(std::string& out, std::string_view text);

} // namespace cortiq::runtime::text
