#pragma once

// The model that a server answers for.

#include <memory>
#include <string>
#include <string_view>

#include "formats/overlay/selection.h"
#include "formats/status.h"
#include "runtime/session/session.h"
#include "runtime/text/text_section.h"
#include "tools/cortiq-serve/openai/constraints.h"

namespace cortiq::serve {

struct ServedModel {
  std::string id; ///< as clients name it
  std::shared_ptr<const runtime::Model> model;
  std::shared_ptr<const runtime::text::TextModel> text;
  std::shared_ptr<Constraints> constraints;
  runtime::Pooling pooling = runtime::Pooling::kMean; ///< of embeddings whose request names none
  uint64_t max_context = 0;
  uint64_t longest_token = 0; ///< bytes
  uint64_t most_choices = 0;  ///< answers that the server takes on at a time, waiting ones included
  int64_t created = 0;        ///< seconds since 1970

  /// What a client's name asks for: the id, or the id with ":skill". Fails for another name, with a list.
  StatusOr<formats::OverlaySelection> find(std::string_view name) const;
  /// The id, and the id with each skill.
  std::vector<std::string> names() const;
  /// The bytes that a token stands for, also where they are a part of a character.
  std::string token_bytes(uint32_t id) const;
  /// Its text; "bytes:\\xe6\\xad" where the bytes are a part of a character, so that tokens keep apart.
  std::string token_name(uint32_t id) const;
};

} // namespace cortiq::serve
