#pragma once

// GET /: a plain page to chat with the model.

#include <string_view>

namespace cortiq::serve {

extern const std::string_view kChatPage;

} // namespace cortiq::serve
