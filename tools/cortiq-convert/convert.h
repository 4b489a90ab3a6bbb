#pragma once

// A model of another format to a CMF file.

#include <functional>
#include <string>
#include <vector>

#include "formats/status.h"
#include "tools/cortiq-convert/plan.h"

namespace cortiq::convert {

struct ConvertOptions {
  std::string input;  ///< GGUF file (part 1 of a split), or a checkpoint folder
  std::string output; ///< CMF file
  QuantOptions quant;
  uint64_t shard_size = 0; ///< bytes of payload a file; 0 = one file
  unsigned threads = 1;
  /// Called now and then with what is done: "writing" or "verifying", 0 to 1.
  std::function<void(const char* what, double done)> progress;
};

/// One tensor of the result.
struct ConvertedTensor {
  std::string name;
  std::string from, to; ///< codecs, by the table's names
  bool kept = false;    ///< decodes to the same bits as the source
  /// Root of the squared error over the squared values; 0 where kept.
  double relative_error = 0;
};

struct ConvertSummary {
  std::string format; ///< of the source
  uint64_t bytes_in = 0, bytes_out = 0;
  size_t shards = 0; ///< files of a sharded result; 0 = not sharded
  std::vector<ConvertedTensor> tensors;
  std::vector<std::string> warnings;
};

/// Writes the result under a temporary name, opens it, recomputes its hashes, decodes every tensor beside its source,
/// and only then gives it its name; a sharded one is checked whole before its files get theirs. Memory: a few MiB for
/// each thread and what an encoder keeps of one row or column set; payloads are never held whole.
StatusOr<ConvertSummary> convert(const ConvertOptions& options);

} // namespace cortiq::convert
