// The delta rule that linear attentions share: a head's state S of kKeyDim rows and kValueDim columns goes through a token.
// Who includes this says by DELTA_FADE(i) what row i of the state keeps.

shared float query[kKeyDim];
shared float key[kKeyDim];
shared float result[kValueDim];

float logistic(float x) { return 1.0 / (1.0 + exp(-x)); }
float softplus(float x) { return x > 20.0 ? x : max(x, 0.0) + log(1.0 + exp(-abs(x))); }

// Leaves in `query` and `key` what stands at these places of the arena, of length 1 / sqrt(kKeyDim) and 1.
void load_unit_keys(uint query_at, uint key_at) {
  float q_squares = 0.0, k_squares = 0.0;
  barrier();
  for (uint i = local_index(); i < kKeyDim; i += kLocal) {
    query[i] = a32[query_at + i];
    key[i] = a32[key_at + i];
    q_squares = fma(query[i], query[i], q_squares);
    k_squares = fma(key[i], key[i], k_squares);
  }
  float q_factor = 1.0 / sqrt((group_sum(q_squares) + 1e-6) * float(kKeyDim));
  float k_factor = 1.0 / sqrt(group_sum(k_squares) + 1e-6);
  for (uint i = local_index(); i < kKeyDim; i += kLocal) {
    query[i] *= q_factor;
    key[i] *= k_factor;
  }
  barrier();
}

// S = fade * S; S += rate * key (x) (value - S key), or without `corrects` rate * key (x) value; result = S query. `state` is
// where the head's state starts, `values` where its values stand in the arena. An invocation has columns of its own, and
// returns the sum of the squares of their results.
float delta_rule(uint state, uint values, float rate, bool corrects) {
  float squares = 0.0;
  for (uint v = local_index(); v < kValueDim; v += kLocal) {
    float known = 0.0;
    if (corrects)
      for (uint i = 0; i < kKeyDim; ++i)
        known = fma(kv32[state + i * kValueDim + v] * DELTA_FADE(i), key[i], known);
    float change = (a32[values + v] - known) * rate;
    float sum = 0.0;
    for (uint i = 0; i < kKeyDim; ++i) {
      float s = fma(key[i], change, kv32[state + i * kValueDim + v] * DELTA_FADE(i));
      kv32[state + i * kValueDim + v] = s;
      sum = fma(s, query[i], sum);
    }
    result[v] = sum;
    squares = fma(sum, sum, squares);
  }
  return squares;
}
