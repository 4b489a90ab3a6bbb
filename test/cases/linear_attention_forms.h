#pragma once

// The recurrent mixers without their recurrence: what a state would hold is written out as a sum over all earlier
// tokens. Slow, in doubles, and independent of every other evaluation of the project.

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace cortiq::test {

using Rows = std::vector<std::vector<double>>; ///< [token][feature]

inline double logistic(double x) {
  return 1 / (1 + std::exp(-x));
}

/// y[t][c] = sum over j of taps[c][j] * x[t - (width - 1) + j][c].
inline Rows convolved(const Rows& x, const std::vector<float>& taps, size_t width) {
  Rows out(x.size(), std::vector<double>(x[0].size(), 0));
  for (size_t t = 0; t < x.size(); ++t)
    for (size_t c = 0; c < x[0].size(); ++c)
      for (size_t back = 0; back < width && back <= t; ++back)
        out[t][c] += taps[c * width + width - 1 - back] * x[t - back][c];
  return out;
}

/// What one head reads at every token.
struct HeadInputs {
  Rows decay, query, key; ///< [token][row of the state]
  Rows value;             ///< [token][column]
  std::vector<double> rate;
};

/// The outputs of a delta rule (or of plain accumulation, without `corrects`), as attention over earlier changes: token
/// i changes the state by key_i (x) change_i, of which row r has decayed by the product of decay_j[r] over i < j <= t.
inline Rows written_out(const HeadInputs& in, bool corrects) {
  const size_t tokens = in.value.size(), rows = in.key[0].size(), cols = in.value[0].size();
  auto weight = [&](const std::vector<double>& reader, size_t t, size_t i) {
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) {
      double left = 1;
      for (size_t j = i + 1; j <= t; ++j)
        left *= in.decay[j][r];
      sum += reader[r] * left * in.key[i][r];
    }
    return sum;
  };
  Rows change(tokens, std::vector<double>(cols)), out(tokens, std::vector<double>(cols, 0));
  for (size_t t = 0; t < tokens; ++t) {
    for (size_t c = 0; c < cols; ++c)
      change[t][c] = in.value[t][c];
    for (size_t i = 0; corrects && i < t; ++i) {
      const double known = weight(in.key[t], t, i);
      for (size_t c = 0; c < cols; ++c)
        change[t][c] -= known * change[i][c];
    }
    for (double& c : change[t])
      c *= in.rate[t];
    for (size_t i = 0; i <= t; ++i) {
      const double read = weight(in.query[t], t, i);
      for (size_t c = 0; c < cols; ++c)
        out[t][c] += read * change[i][c];
    }
  }
  return out;
}

/// x / sqrt(|x|^2 + 1e-6) * factor, for the `count` features from `first`.
inline std::vector<double> unit(const std::vector<double>& x, size_t first, size_t count, double factor = 1) {
  std::vector<double> out(x.begin() + static_cast<long>(first), x.begin() + static_cast<long>(first + count));
  double squares = 1e-6;
  for (double v : out)
    squares += v * v;
  for (double& v : out)
    v *= factor / std::sqrt(squares);
  return out;
}

/// y / sqrt(mean(y^2) + eps) * norm * opened(gate).
inline std::vector<double> gated(std::vector<double> y, const std::vector<float>& norm, const std::vector<double>& gate,
                                 size_t first, double eps, const std::function<double(double)>& opened) {
  double mean = 0;
  for (double v : y)
    mean += v * v / static_cast<double>(y.size());
  for (size_t i = 0; i < y.size(); ++i)
    y[i] *= norm[i] / std::sqrt(mean + eps) * opened(gate[first + i]);
  return y;
}

struct GatedDeltaShape {
  size_t keyHeads, valueHeads, keyDim, valueDim;
  bool tiled = false, rates = false, sigmoidGate = false;
  double eps = 1e-6;
};

inline Rows gated_delta(const GatedDeltaShape& s, const Rows& qkv, const Rows& z, const Rows& a, const Rows& b,
                        const std::vector<float>& decay, const std::vector<float>& dt, const std::vector<float>& norm) {
  Rows out(qkv.size(), std::vector<double>(s.valueHeads * s.valueDim));
  for (size_t h = 0; h < s.valueHeads; ++h) {
    const size_t keyHead = s.tiled ? h % s.keyHeads : h * s.keyHeads / s.valueHeads;
    HeadInputs in;
    for (size_t t = 0; t < qkv.size(); ++t) {
      const double x = a[t][h] + dt[h];
      const double rate = s.rates ? -static_cast<double>(decay[h]) : std::exp(static_cast<double>(decay[h]));
      in.decay.emplace_back(s.keyDim, std::exp(-rate * std::log(1 + std::exp(x))));
      in.query.push_back(unit(qkv[t], keyHead * s.keyDim, s.keyDim, 1 / std::sqrt(static_cast<double>(s.keyDim))));
      in.key.push_back(unit(qkv[t], (s.keyHeads + keyHead) * s.keyDim, s.keyDim));
      const auto v = qkv[t].begin() + static_cast<long>(2 * s.keyHeads * s.keyDim + h * s.valueDim);
      in.value.emplace_back(v, v + static_cast<long>(s.valueDim));
      in.rate.push_back(logistic(b[t][h]));
    }
    const Rows o = written_out(in, true);
    for (size_t t = 0; t < qkv.size(); ++t) {
      const auto y = gated(o[t], norm, z[t], h * s.valueDim, s.eps,
                           [&](double g) { return s.sigmoidGate ? logistic(g) : g * logistic(g); });
      std::copy(y.begin(), y.end(), out[t].begin() + static_cast<long>(h * s.valueDim));
    }
  }
  return out;
}

struct KdaShape {
  size_t heads, keyDim, valueDim;
  bool bounded = false;
  double bound = 0, eps = 1e-6;
};

/// `decay` has a value for each channel of each head.
inline Rows kda(const KdaShape& s, const Rows& q, const Rows& k, const Rows& v, const Rows& f, const Rows& b,
                const Rows& gate, const std::vector<float>& decay, const std::vector<float>& dt,
                const std::vector<float>& norm) {
  Rows out(q.size(), std::vector<double>(s.heads * s.valueDim));
  for (size_t h = 0; h < s.heads; ++h) {
    HeadInputs in;
    for (size_t t = 0; t < q.size(); ++t) {
      std::vector<double> left(s.keyDim);
      for (size_t i = 0; i < s.keyDim; ++i) {
        const double x = f[t][h * s.keyDim + i] + dt[h * s.keyDim + i];
        const double rate = std::exp(static_cast<double>(decay[h * s.keyDim + i]));
        left[i] = s.bounded ? std::exp(s.bound * logistic(rate * x)) : std::pow(1 + std::exp(x), -rate);
      }
      in.decay.push_back(left);
      in.query.push_back(unit(q[t], h * s.keyDim, s.keyDim, 1 / std::sqrt(static_cast<double>(s.keyDim))));
      in.key.push_back(unit(k[t], h * s.keyDim, s.keyDim));
      const auto value = v[t].begin() + static_cast<long>(h * s.valueDim);
      in.value.emplace_back(value, value + static_cast<long>(s.valueDim));
      in.rate.push_back(logistic(b[t][h]));
    }
    const Rows o = written_out(in, true);
    for (size_t t = 0; t < q.size(); ++t) {
      const auto y = gated(o[t], norm, gate[t], h * s.valueDim, s.eps, logistic);
      std::copy(y.begin(), y.end(), out[t].begin() + static_cast<long>(h * s.valueDim));
    }
  }
  return out;
}

struct VmfShape {
  size_t heads, phases, valueDim;
  bool delta = false;
};

/// `gate` may be empty.
inline Rows vmf_phase(const VmfShape& s, const Rows& thetaQ, const Rows& thetaK, const Rows& v, const Rows& gate,
                      const std::vector<float>& decay) {
  Rows out(v.size(), std::vector<double>(s.heads * s.valueDim));
  const size_t rows = 2 * s.phases;
  for (size_t h = 0; h < s.heads; ++h) {
    HeadInputs in;
    auto phi = [&](const std::vector<double>& theta) {
      std::vector<double> out(rows);
      for (size_t i = 0; i < rows; ++i) {
        const double angle = theta[h * s.phases + i % s.phases];
        out[i] = (i < s.phases ? std::cos(angle) : std::sin(angle)) / (s.delta ? std::sqrt(double(s.phases)) : 1);
      }
      return out;
    };
    for (size_t t = 0; t < v.size(); ++t) {
      std::vector<double> left(rows);
      for (size_t i = 0; i < rows; ++i)
        left[i] = std::exp(-std::exp(static_cast<double>(decay[h * rows + i])));
      in.decay.push_back(left);
      in.query.push_back(phi(thetaQ[t]));
      in.key.push_back(phi(thetaK[t]));
      const auto value = v[t].begin() + static_cast<long>(h * s.valueDim);
      in.value.emplace_back(value, value + static_cast<long>(s.valueDim));
      in.rate.push_back(gate.empty() ? 1 : logistic(gate[t][h]));
    }
    const Rows o = written_out(in, s.delta);
    for (size_t t = 0; t < v.size(); ++t)
      std::copy(o[t].begin(), o[t].end(), out[t].begin() + static_cast<long>(h * s.valueDim));
  }
  return out;
}

} // namespace cortiq::test
