#include "tools/cortiq-convert/text_bundle.h"

#include <nlohmann/json.hpp>

namespace cortiq::convert {

formats::Json text_bundle(const runtime::text::TextConfig& config) {
  formats::Json bundle = formats::Json::object();
  bundle["eos_token_ids"] = config.eos_ids;
  if (config.chat_template)
    bundle["chat_template"] = *config.chat_template;
  if (config.bos_id)
    bundle["bos_token_id"] = *config.bos_id;
  if (config.pad_id)
    bundle["pad_token_id"] = *config.pad_id;
  return bundle;
}

} // namespace cortiq::convert
