#include <algorithm>
#include <cmath>

#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

Status referenceRope(Operation* op, Frame& frame) {
  auto rope = cast<RopeOp>(op);
  const ArrayRef<float> frequencies = rope.getRope().getInverseFrequencies().asArrayRef();
  const float magnitude = static_cast<float>(rope.getRope().getMagnitude().getValueAsDouble());
  const int64_t half = frequencies.size(), headDim = rope.getHeadDim();
  Array out = frame.value(rope.getX());
  for (int64_t t = 0; t < out.rows; ++t) {
    const float position = static_cast<float>(frame.position() + t);
    for (int64_t i = 0; i < half; ++i) {
      // The angle is an f32 by definition (CMF specification 3.3); its sine and cosine are exact to f32.
      const double angle = position * frequencies[i];
      const float c = static_cast<float>(std::cos(angle)) * magnitude;
      const float s = static_cast<float>(std::sin(angle)) * magnitude;
      for (float* head = out.row(t); head < out.row(t) + out.cols; head += headDim) {
        const float a = head[i], b = head[i + half];
        head[i] = a * c - b * s;
        head[i + half] = a * s + b * c;
      }
    }
  }
  frame.set(rope.getResult(), std::move(out));
  return {};
}

namespace {

// One head of one token: softmax over the visible keys, times their values.
void attend(AttentionOp op, const LayerCache& cache, const float* q, int64_t kvHead, int64_t first, int64_t last,
            const float* sink, float* out) {
  const int64_t headDim = op.getHeadDim(), vDim = op.getVDim();
  const double scale = op.getScale().convertToDouble();
  const double cap = op.getSoftcap() ? op.getSoftcap()->convertToDouble() : 0;
  std::vector<double> weights(last - first + 1);
  for (int64_t p = first; p <= last; ++p) {
    const float* k = cache.keys[p].data() + kvHead * headDim;
    double score = 0;
    for (int64_t i = 0; i < headDim; ++i)
      score += static_cast<double>(q[i]) * k[i];
    score *= scale;
    weights[p - first] = cap != 0 ? cap * std::tanh(score / cap) : score;
  }
  double most = *std::max_element(weights.begin(), weights.end());
  if (sink)
    most = std::max(most, static_cast<double>(*sink));
  double total = sink ? std::exp(*sink - most) : 0;
  for (double& weight : weights) {
    weight = std::exp(weight - most);
    total += weight;
  }
  for (int64_t i = 0; i < vDim; ++i) {
    double sum = 0;
    for (int64_t p = first; p <= last; ++p)
      sum += weights[p - first] * cache.values[p][kvHead * vDim + i];
    out[i] = static_cast<float>(sum / total);
  }
}

} // namespace

Status referenceAttention(Operation* op, Frame& frame) {
  auto attention = cast<AttentionOp>(op);
  const Array &q = frame.value(attention.getQ()), &k = frame.value(attention.getK()),
              &v = frame.value(attention.getV());
  std::shared_ptr<const std::vector<float>> sinks;
  if (attention.getSinks()) {
    CORTIQ_ASSIGN_OR_RETURN(sinks, frame.weight(attention.getSinks()));
  }
  LayerCache& cache = frame.cache(attention.getLayer());
  for (int64_t t = 0; t < q.rows; ++t) {
    cache.keys.emplace_back(k.row(t), k.row(t) + k.cols);
    cache.values.emplace_back(v.row(t), v.row(t) + v.cols);
  }
  const int64_t heads = attention.getHeads(), shared = heads / static_cast<int64_t>(attention.getKvHeads());
  const int64_t headDim = attention.getHeadDim(), vDim = attention.getVDim();
  Array out(q.rows, heads * vDim);
  for (int64_t t = 0; t < q.rows; ++t) {
    const int64_t last = static_cast<int64_t>(frame.position()) + t;
    const int64_t first =
        attention.getWindow() ? std::max<int64_t>(0, last - static_cast<int64_t>(*attention.getWindow()) + 1) : 0;
    for (int64_t h = 0; h < heads; ++h)
      attend(attention, cache, q.row(t) + h * headDim, h / shared, first, last, sinks ? sinks->data() + h : nullptr,
             out.row(t) + h * vDim);
  }
  frame.set(attention.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
