#pragma once

// What may come next, beyond what the model thinks: a grammar, a schema.

#include <cstdint>
#include <span>

namespace cortiq::runtime {

/// Of one generation; called by one thread at a time, mask() before each choice and accept() behind it.
class TokenConstraint {
public:
  virtual ~TokenConstraint() = default;
  /// Sets the logits of ids that may not come next to minus infinity; at least one has to be left. End tokens are ids
  /// like others: they are to be masked as long as the text may not end.
  virtual void mask(std::span<float> logits) = 0;
  /// `id`, which is no end token, was chosen. False: the text is complete, nothing follows.
  virtual bool accept(uint32_t id) = 0;
};

} // namespace cortiq::runtime
