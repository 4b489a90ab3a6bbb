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

// The anchors of one key/value head and the query that they are scored by.
struct Anchors {
  const float *query = nullptr, *keys = nullptr, *values = nullptr;
  int64_t count = 0;
};

// What the query at `position` counts.
double temperature(AttentionOp op, int64_t position) {
  if (!op.getTemperatureScale())
    return 1;
  return 1 + op.getTemperatureScale()->convertToDouble() *
                 std::log(1 + std::floor(position / op.getTemperatureLength()->convertToDouble()));
}

// One head of one token, at position `last`: softmax over the visible keys, times their values.
void attend(AttentionOp op, const LayerCache& cache, const float* q, int64_t kvHead, int64_t first, int64_t last,
            const float* sink, const Anchors& anchors, float* out) {
  const int64_t headDim = op.getHeadDim(), vDim = op.getVDim();
  const double scale = op.getScale().convertToDouble() * temperature(op, last);
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
  for (int64_t a = 0; a < anchors.count; ++a) {
    double score = 0;
    for (int64_t i = 0; i < headDim; ++i)
      score += static_cast<double>(anchors.query[i]) * anchors.keys[a * headDim + i];
    weights.push_back(score * scale);
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
    for (int64_t a = 0; a < anchors.count; ++a)
      sum += weights[last - first + 1 + a] * anchors.values[a * vDim + i];
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
  std::shared_ptr<const std::vector<float>> anchorKeys, anchorValues;
  if (attention.getStill()) {
    CORTIQ_ASSIGN_OR_RETURN(anchorKeys, frame.weight(attention.getAnchorKeys()));
    CORTIQ_ASSIGN_OR_RETURN(anchorValues, frame.weight(attention.getAnchorValues()));
  }
  const int64_t anchorCount = attention.getAnchorCount();
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
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t kvHead = h / shared;
      int64_t window = attention.getWindow() ? static_cast<int64_t>(*attention.getWindow()) : last + 1;
      if (attention.getGroupWindows())
        window = (*attention.getGroupWindows())[kvHead];
      Anchors anchors;
      if (anchorCount != 0)
        anchors = {frame.value(attention.getStill()).row(t) + h * headDim,
                   anchorKeys->data() + kvHead * anchorCount * headDim,
                   anchorValues->data() + kvHead * anchorCount * vDim, anchorCount};
      attend(attention, cache, q.row(t) + h * headDim, kvHead, std::max<int64_t>(0, last - window + 1), last,
             sinks ? sinks->data() + h : nullptr, anchors, out.row(t) + h * vDim);
    }
  }
  if (attention.getRing()) {
    const int64_t next = static_cast<int64_t>(frame.position()) + q.rows;
    for (int64_t p = 0; p <= next - static_cast<int64_t>(*attention.getWindow()); ++p)
      cache.keys[p] = cache.values[p] = {};
  }
  frame.set(attention.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
