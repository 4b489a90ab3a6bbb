#pragma once

// A batch of sessions that run one after the other: where there is no batch to compute, as on a GPU.

#include <memory>

#include "formats/status.h"
#include "runtime/batch/batch_engine.h"

namespace cortiq::runtime {

/// Options as for BatchEngine::create(); each sequence is a session with a cache of its own, and nothing is shared: a
/// sequence that begins as one that ended takes its session.
StatusOr<std::unique_ptr<BatchEngine>> make_session_batch(std::shared_ptr<const Model> model,
                                                          const BatchOptions& options);

} // namespace cortiq::runtime
