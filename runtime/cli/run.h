#pragma once

// What `cortiq-run` does with an engine once it has one; shared with `cortiq-compile --interpret`.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/overlay/routing.h"
#include "formats/overlay/selection.h"
#include "formats/status.h"
#include "runtime/cli/run_options.h"
#include "runtime/engine.h"
#include "runtime/session/saved_sequence.h"
#include "runtime/text/text_section.h"

namespace cortiq::runtime::cli {

/// An engine with its text side and what to print about it.
struct Loaded {
  std::unique_ptr<Engine> engine;
  std::optional<text::TextModel> text; ///< absent: token ids only
  std::string text_absent;             ///< why, where that is known
  uint32_t token_count = 0;            ///< ids that have a text; 0 = all of the vocabulary
  std::string description;             ///< one line for --stats: what runs, with which threads and cache
  std::string target, target_reason;   ///< which code runs and, where there was a choice, why
  std::vector<std::string> targets;    ///< all that the artifact holds
  double load_seconds = 0;
  formats::OverlaySelection selection;     ///< what the engine has in force
  std::optional<formats::Routing> routing; ///< of --skill auto
  /// Of an engine whose state can be saved: writes it to a file, and puts it in place of what the engine holds.
  std::function<Status(const std::string& path, const SavedSequence& sequence)> save;
  std::function<StatusOr<SavedSequence>(const std::string& path)> restore;
  /// Lines for --stats after the work; may be empty.
  std::function<std::vector<std::string>()> summary;
  /// Lines for --verbose after the work; may be empty.
  std::function<std::vector<std::string>()> report;
};

/// Runs what `options` ask for on `loaded`, writing to standard output. Failures are returned; nothing but results goes
/// to standard output.
Status run(const RunOptions& options, Loaded& loaded);

} // namespace cortiq::runtime::cli
