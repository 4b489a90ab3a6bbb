#pragma once

#include "formats/json.h"
#include "runtime/text/text_config.h"

namespace cortiq::convert {

/// The chat bundle of a CMF header (5.3) for a text configuration.
formats::Json text_bundle(const runtime::text::TextConfig& config);

} // namespace cortiq::convert
