// References of the operations with recurrent state: one token after the other, as the formulas of RecurrentOps.td
// say. Gates and sums run in f64; what a state holds is f32.

#include <cmath>

#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double softplus(double x) {
  return x > 20 ? x : std::log1p(std::exp(x));
}

// 1 / sqrt(|x|^2 + 1e-6).
double inverseLength(const float* x, int64_t n) {
  double squares = 0;
  for (int64_t i = 0; i < n; ++i)
    squares += static_cast<double>(x[i]) * x[i];
  return 1 / std::sqrt(squares + 1e-6);
}

// Appends `row` to the last K - 1 rows that the state holds and gives, for each channel, its taps' sum.
std::vector<double> convolve(std::vector<float>& state, const std::vector<float>& taps, const float* row,
                             int64_t channels, int64_t width) {
  std::vector<double> sums(channels);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t j = 0; j + 1 < width; ++j)
      sums[c] += static_cast<double>(taps[c * width + j]) * state[j * channels + c];
    sums[c] += static_cast<double>(taps[c * width + width - 1]) * row[c];
  }
  state.erase(state.begin(), state.begin() + channels);
  state.insert(state.end(), row, row + channels);
  return sums;
}

// One step of a linear attention on S (rows x cols): S = decay * S, S += rate * key (x) (value - key^T S), and the
// result query^T S. Without `corrects` the whole value is added.
void attend(float* s, int64_t rows, int64_t cols, const std::vector<double>& decay, const std::vector<double>& query,
            const std::vector<double>& key, const float* value, double rate, bool corrects, double* out) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      s[i * cols + j] = static_cast<float>(decay[i] * s[i * cols + j]);
  for (int64_t j = 0; j < cols; ++j) {
    double known = 0;
    for (int64_t i = 0; corrects && i < rows; ++i)
      known += key[i] * s[i * cols + j];
    const double change = rate * (value[j] - known);
    out[j] = 0;
    for (int64_t i = 0; i < rows; ++i) {
      s[i * cols + j] = static_cast<float>(s[i * cols + j] + key[i] * change);
      out[j] += query[i] * s[i * cols + j];
    }
  }
}

std::vector<double> scaled(const float* x, int64_t n, double factor) {
  std::vector<double> out(x, x + n);
  for (double& value : out)
    value *= factor;
  return out;
}

// out = o / sqrt(mean(o^2) + eps) * weight.
void normalize(const std::vector<double>& o, double eps, const std::vector<float>& weight, float* out) {
  double squares = 0;
  for (double value : o)
    squares += value * value;
  const double factor = 1 / std::sqrt(squares / static_cast<double>(o.size()) + eps);
  for (size_t i = 0; i < o.size(); ++i)
    out[i] = static_cast<float>(o[i] * factor * weight[i]);
}

} // namespace

Status referenceCausalConv(Operation* op, Frame& frame) {
  auto conv = cast<CausalConvOp>(op);
  CORTIQ_ASSIGN_OR_RETURN(const auto taps, frame.weight(conv.getTaps()));
  std::vector<float>& state = frame.recurrent(op);
  const Array& x = frame.value(conv.getX());
  Array out(x.rows, x.cols);
  for (int64_t t = 0; t < x.rows; ++t) {
    const std::vector<double> sums = convolve(state, *taps, x.row(t), x.cols, conv.getTaps().getType().getCols());
    for (int64_t c = 0; c < x.cols; ++c)
      out.row(t)[c] = static_cast<float>(conv.getSilu() ? sums[c] * sigmoid(sums[c]) : sums[c]);
  }
  frame.set(conv.getResult(), std::move(out));
  return {};
}

Status referenceShortConv(Operation* op, Frame& frame) {
  auto conv = cast<ShortConvOp>(op);
  CORTIQ_ASSIGN_OR_RETURN(const auto taps, frame.weight(conv.getTaps()));
  std::vector<float>& state = frame.recurrent(op);
  const Array& bcx = frame.value(conv.getBcx());
  const int64_t channels = bcx.cols / 3;
  Array out(bcx.rows, channels);
  std::vector<float> product(channels);
  for (int64_t t = 0; t < bcx.rows; ++t) {
    const float *b = bcx.row(t), *c = b + channels, *x = c + channels;
    for (int64_t i = 0; i < channels; ++i)
      product[i] = b[i] * x[i];
    const std::vector<double> sums =
        convolve(state, *taps, product.data(), channels, conv.getTaps().getType().getCols());
    for (int64_t i = 0; i < channels; ++i)
      out.row(t)[i] = static_cast<float>(c[i] * sums[i]);
  }
  frame.set(conv.getResult(), std::move(out));
  return {};
}

Status referenceGatedDelta(Operation* op, Frame& frame) {
  auto delta = cast<GatedDeltaOp>(op);
  CORTIQ_ASSIGN_OR_RETURN(const auto decay, frame.weight(delta.getDecay()));
  CORTIQ_ASSIGN_OR_RETURN(const auto dtBias, frame.weight(delta.getDtBias()));
  CORTIQ_ASSIGN_OR_RETURN(const auto norm, frame.weight(delta.getNorm()));
  std::vector<float>& state = frame.recurrent(op);
  const Array &qkv = frame.value(delta.getQkv()), &z = frame.value(delta.getZ()), &a = frame.value(delta.getA()),
              &b = frame.value(delta.getB());
  const int64_t keyHeads = delta.getKeyHeads(), heads = delta.getValueHeads(), keyDim = delta.getKeyDim(),
                valueDim = delta.getValueDim();
  Array out(qkv.rows, heads * valueDim);
  std::vector<double> o(valueDim);
  for (int64_t t = 0; t < qkv.rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t keyHead = delta.getTiled() ? h % keyHeads : h / (heads / keyHeads);
      const float* q = qkv.row(t) + keyHead * keyDim;
      const float* k = qkv.row(t) + (keyHeads + keyHead) * keyDim;
      const float* v = qkv.row(t) + 2 * keyHeads * keyDim + h * valueDim;
      const double rate = delta.getRates() ? (*decay)[h] : -std::exp(static_cast<double>((*decay)[h]));
      const double g = std::exp(rate * softplus(static_cast<double>(a.row(t)[h]) + (*dtBias)[h]));
      attend(state.data() + h * keyDim * valueDim, keyDim, valueDim, std::vector<double>(keyDim, g),
             scaled(q, keyDim, inverseLength(q, keyDim) / std::sqrt(static_cast<double>(keyDim))),
             scaled(k, keyDim, inverseLength(k, keyDim)), v, sigmoid(b.row(t)[h]), /*corrects=*/true, o.data());
      float* y = out.row(t) + h * valueDim;
      normalize(o, delta.getEps().convertToDouble(), *norm, y);
      for (int64_t j = 0; j < valueDim; ++j) {
        const double gate = z.row(t)[h * valueDim + j];
        y[j] = static_cast<float>(y[j] * (delta.getSigmoidGate() ? sigmoid(gate) : gate * sigmoid(gate)));
      }
    }
  frame.set(delta.getResult(), std::move(out));
  return {};
}

Status referenceKda(Operation* op, Frame& frame) {
  auto kda = cast<KdaOp>(op);
  CORTIQ_ASSIGN_OR_RETURN(const auto decay, frame.weight(kda.getDecay()));
  CORTIQ_ASSIGN_OR_RETURN(const auto dtBias, frame.weight(kda.getDtBias()));
  CORTIQ_ASSIGN_OR_RETURN(const auto norm, frame.weight(kda.getNorm()));
  std::vector<float>& state = frame.recurrent(op);
  const Array &q = frame.value(kda.getQ()), &k = frame.value(kda.getK()), &v = frame.value(kda.getV()),
              &f = frame.value(kda.getF()), &b = frame.value(kda.getB()), &gate = frame.value(kda.getGate());
  const int64_t heads = kda.getHeads(), keyDim = kda.getKeyDim(), valueDim = kda.getValueDim();
  const auto decays = static_cast<int64_t>(decay->size());
  auto decayOf = [&](int64_t h, int64_t i) {
    return std::exp(static_cast<double>((*decay)[decays == heads ? h : decays == keyDim ? i : h * keyDim + i]));
  };
  Array out(q.rows, heads * valueDim);
  std::vector<double> o(valueDim), kept(keyDim);
  for (int64_t t = 0; t < q.rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const float *query = q.row(t) + h * keyDim, *key = k.row(t) + h * keyDim;
      for (int64_t i = 0; i < keyDim; ++i) {
        const double x = static_cast<double>(f.row(t)[h * keyDim + i]) + (*dtBias)[h * keyDim + i];
        kept[i] = std::exp(kda.getLowerBound() ? kda.getLowerBound()->convertToDouble() * sigmoid(decayOf(h, i) * x)
                                               : -decayOf(h, i) * softplus(x));
      }
      attend(state.data() + h * keyDim * valueDim, keyDim, valueDim, kept,
             scaled(query, keyDim, inverseLength(query, keyDim) / std::sqrt(static_cast<double>(keyDim))),
             scaled(key, keyDim, inverseLength(key, keyDim)), v.row(t) + h * valueDim, sigmoid(b.row(t)[h]),
             /*corrects=*/true, o.data());
      float* y = out.row(t) + h * valueDim;
      normalize(o, kda.getEps().convertToDouble(), *norm, y);
      for (int64_t j = 0; j < valueDim; ++j)
        y[j] = static_cast<float>(y[j] * sigmoid(gate.row(t)[h * valueDim + j]));
    }
  frame.set(kda.getResult(), std::move(out));
  return {};
}

Status referenceVmfPhase(Operation* op, Frame& frame) {
  auto vmf = cast<VmfPhaseOp>(op);
  CORTIQ_ASSIGN_OR_RETURN(const auto decay, frame.weight(vmf.getDecay()));
  std::vector<float>& state = frame.recurrent(op);
  const Array &thetaQ = frame.value(vmf.getThetaQ()), &thetaK = frame.value(vmf.getThetaK()),
              &v = frame.value(vmf.getV());
  const int64_t heads = vmf.getHeads(), phases = vmf.getPhases(), valueDim = vmf.getValueDim();
  const double factor = vmf.getDelta() ? 1 / std::sqrt(static_cast<double>(phases)) : 1;
  auto features = [&](const float* theta) {
    std::vector<double> phi(2 * phases);
    for (int64_t i = 0; i < phases; ++i) {
      phi[i] = factor * std::cos(static_cast<double>(theta[i]));
      phi[phases + i] = factor * std::sin(static_cast<double>(theta[i]));
    }
    return phi;
  };
  Array out(v.rows, heads * valueDim);
  std::vector<double> o(valueDim), kept(2 * phases);
  for (int64_t t = 0; t < v.rows; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < 2 * phases; ++i)
        kept[i] = std::exp(-std::exp(static_cast<double>((*decay)[h * 2 * phases + i])));
      const double kappa = vmf.getGate() ? sigmoid(frame.value(vmf.getGate()).row(t)[h]) : 1;
      attend(state.data() + h * 2 * phases * valueDim, 2 * phases, valueDim, kept, features(thetaQ.row(t) + h * phases),
             features(thetaK.row(t) + h * phases), v.row(t) + h * valueDim, kappa, vmf.getDelta(), o.data());
      std::copy(o.begin(), o.end(), out.row(t) + h * valueDim);
    }
  frame.set(vmf.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
