// What happens to heads before attention: norm, rotation, the temperature of long contexts. One head at a time, in shared
// memory; all invocations of the workgroup come here.

layout(constant_id = SPEC_PAIRS) const uint kPairs = 0;
layout(constant_id = SPEC_NORM_FLAGS) const uint kNormFlags = 0;
layout(constant_id = SPEC_EPS) const float kEps = 1e-6;
layout(constant_id = SPEC_TEMPERATURE_LENGTH) const float kWarmLength = 0.0;
layout(constant_id = SPEC_TEMPERATURE_SCALE) const float kWarmScale = 0.0;

shared float head[kHeadDim + kValueDim];

void load_head(uint from, uint dim) {
  barrier();
  for (uint i = local_index(); i < dim; i += kLocal)
    head[i] = a32[from + i];
  barrier();
}

void norm_head(uint dim, bool weighted, uint weight) {
  float squares = 0.0;
  for (uint i = local_index(); i < dim; i += kLocal)
    squares = fma(head[i], head[i], squares);
  float factor = 1.0 / sqrt(group_sum(squares) / float(dim) + kEps);
  for (uint i = local_index(); i < dim; i += kLocal)
    head[i] = weighted ? head[i] * factor * v32[weight + i] : head[i] * factor;
  barrier();
}

// Both values of pair i, rotated.
vec2 rotated(uint token, uint i, float a, float b) {
  float c = uintBitsToFloat(step_words[push[PUSH_COSINES] + token * kPairs + i]);
  float s = uintBitsToFloat(step_words[push[PUSH_SINES] + token * kPairs + i]);
  return vec2(a * c - b * s, b * c + a * s);
}

void rotate_head(uint token) {
  for (uint i = local_index(); i < kPairs; i += kLocal) {
    vec2 pair = rotated(token, i, head[i], head[i + kPairs]);
    head[i] = pair.x;
    head[i + kPairs] = pair.y;
  }
  barrier();
}

void turn_head(uint norm, uint weight, uint token) {
  bool normed = (kNormFlags & norm) != 0;
  bool last = (kNormFlags & NORM_AFTER_ROPE) != 0;
  if (normed && !last)
    norm_head(kHeadDim, true, weight);
  if (kPairs != 0)
    rotate_head(token);
  if (normed && last)
    norm_head(kHeadDim, true, weight);
}

void query_head(uint token, uint h) {
  load_head(input_row(token) + h * kHeadDim, kHeadDim);
  turn_head(NORM_Q, push[PUSH_VECTOR], token);
}
void key_head(uint token, uint h) {
  load_head(aux_row(token) + h * kHeadDim, kHeadDim);
  turn_head(NORM_K, push[PUSH_VECTOR2], token);
}
void value_head(uint token, uint h) {
  load_head(third_row(token) + h * kValueDim, kValueDim);
  if ((kNormFlags & NORM_V) != 0)
    norm_head(kValueDim, false, 0);
}

float query_warmth(uint token) {
  return kWarmLength > 0.0 ? 1.0 + kWarmScale * log(1.0 + floor(float(token_position(token)) / kWarmLength)) : 1.0;
}

// Largest values of groups of 32.
shared float head_peaks[(kHeadDim + kValueDim + 31) / 32];

vec4 head_codes(uint i, uint dim) {
  float peak = head_peaks[i / 32];
  vec4 x = vec4(0.0);
  for (uint k = 0; k < 4 && i + k < dim; ++k)
    x[k] = head[i + k];
  return clamp(roundEven(x * (peak > 0.0 ? 127.0 / peak : 0.0)), -127.0, 127.0);
}

// As cache_head, in 8 bits; `head` becomes what the cache gives back.
void cache_head_q8(uint to, uint dim, bool joins) {
  const uint groups = (dim + 31) / 32, words = (dim + 3) / 4;
  for (uint g = local_index(); g < groups; g += kLocal) {
    float peak = 0.0;
    bool bad = false;
    for (uint i = 32 * g; i < min(32 * g + 32, dim); ++i) {
      bad = bad || !(abs(head[i]) <= kCacheMost);
      peak = max(peak, abs(head[i]));
    }
    head_peaks[g] = peak;
    if (!joins)
      continue;
    kv32[to + g] = peak / 127.0;
    if (bad)
      results[RESULT_OVERFLOW] = push[PUSH_LAYER];
  }
  barrier();
  for (uint i = 4 * local_index(); i < 4 * words; i += 4 * kLocal) {
    vec4 codes = head_codes(i, dim);
    uvec4 bytes = uvec4(ivec4(codes)) & 255u;
    if (joins)
      kvu32[to + groups + i / 4] = bytes.x | bytes.y << 8 | bytes.z << 16 | bytes.w << 24;
    for (uint k = 0; k < 4 && i + k < dim; ++k)
      head[i + k] = codes[k] * (head_peaks[i / 32] / 127.0);
  }
  barrier();
}

// What `head` holds joins the cache, if it does; all invocations come here.
void cache_head(uint to, uint dim, bool joins) {
  if (kCache == CACHE_Q8)
    cache_head_q8(to, dim, joins);
  for (uint i = 2 * local_index(); joins && kCache != CACHE_Q8 && i < dim; i += 2 * kLocal)
    cache_pair(to + i, vec2(head[i], head[i + 1]));
}
