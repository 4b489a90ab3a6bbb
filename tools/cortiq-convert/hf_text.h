#pragma once

// The text side of a checkpoint folder.

#include "formats/json.h"
#include "formats/status.h"
#include "tools/cortiq-convert/source_model.h"

namespace cortiq::convert {

/// The file `name` of `folder` as JSON; null where there is none.
StatusOr<formats::Json> read_folder_json(const std::string& folder, const std::string& name);

/// Fills in tokenizer_json and tokenizer_config: tokenizer.json as it is; the end tokens of generation_config.json or
/// else config.json, and of tokenizer_config.json; the template of chat_template.jinja or else tokenizer_config.json.
Status read_hf_text(const std::string& folder, const formats::Json& config, SourceModel& model);

} // namespace cortiq::convert
