#pragma once

// Many sequences of one model, computed together.

#include "formats/status.h"
#include "tools/cortiq-bench/model_bench.h"

namespace cortiq::bench {

/// For each of `options.sequences`: so many sequences, each with a text of its own of about `prefill` tokens, join one
/// after the other, read their prompts in pieces, decode about `decode` tokens and leave; all logits have to be those
/// of sessions of their own, bit for bit: it fails where they are not. Then the speed of decoding them together.
Status bench_batches(const ModelBenchOptions& options);

} // namespace cortiq::bench
