#pragma once

// The arithmetic that the linear attentions share: a head's state S of rows x cols numbers, taken through tokens one
// after the other.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "runtime/executor/program.h"

namespace cortiq::runtime {

/// One token of one head. `decay`, `query`, `key` have a number a row of the state, `value` and `out` one a column.
struct DeltaToken {
  const float* decay;
  const float* query;
  const float* key;
  const float* value;
  float* out;
  float rate;
};

/// S = decay * S;  S += rate * key (x) (value - key^T S), or, unless `corrects`, rate * key (x) value;
/// out = query^T S. At most kDeltaTokens tokens; `scratch` is DeltaScratch::rest().
void delta_rule(float* state, uint64_t rows, uint64_t cols, std::span<const DeltaToken> tokens, bool corrects,
                float* scratch);

/// out = x * factor / sqrt(|x|^2 + 1e-6).
void unit_vector(const float* x, uint64_t count, double factor, float* out);

/// y = y / sqrt(mean(y^2) + eps) * norm * sigmoid(gate), times the gate itself with `silu`.
void gated_norm(float* y, uint64_t count, const float* norm, const float* gate, float eps, bool silu);

/// out = exp(-rates * softplus(f + bias)), or exp(lower_bound * sigmoid(rates * (f + bias))).
void channel_decays(const float* f, const float* bias, const float* rates, uint64_t count,
                    std::optional<float> lower_bound, float* out);

double sigmoid(double x);
double softplus(double x);

/// Tokens that the linear attentions prepare at a time.
inline constexpr uint64_t kDeltaTokens = 16;

/// Takes a head's part of `state`, `size` numbers from `offset` on, through the tokens of a step by
/// `chunk(first, count)`, and keeps what it is behind the first of them where the step asks for that.
template <class Chunk>
void run_delta_chunks(const StepContext& step, const StepShape& shape, uint32_t state, uint64_t offset, uint64_t size,
                      Chunk chunk) {
  for (uint64_t done = 0; done < shape.count;) {
    const bool keep = done == 0 && !step.kept_states.empty();
    const uint64_t count = keep ? 1 : std::min(kDeltaTokens, shape.count - done);
    chunk(shape.first + done, count);
    if (keep)
      std::memcpy(step.kept_states[state] + offset, step.states[state] + offset, size * sizeof(float));
    done += count;
  }
}

/// What a worker's scratch holds for the tokens of one chunk.
struct DeltaScratch {
  DeltaScratch(uint8_t* scratch, uint64_t rows)
      : floats(reinterpret_cast<float*>(scratch)), stride((rows + 15) / 16 * 16) {}
  static uint64_t bytes(uint64_t rows) { return 4 * kDeltaTokens * ((rows + 15) / 16 * 16) * sizeof(float); }

  float* decay(uint64_t t) const { return floats + t * stride; }
  float* query(uint64_t t) const { return floats + (kDeltaTokens + t) * stride; }
  float* key(uint64_t t) const { return floats + (2 * kDeltaTokens + t) * stride; }
  float* rest() const { return floats + 3 * kDeltaTokens * stride; } ///< for delta_rule()

  float* floats;
  uint64_t stride;
};

} // namespace cortiq::runtime
