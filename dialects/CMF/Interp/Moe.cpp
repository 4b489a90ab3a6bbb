#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "dialects/CMF/IR/OverlayCatalog.h"
#include "dialects/CMF/Interp/Arithmetic.h"
#include "dialects/CMF/Interp/OpTable.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

using Vector = std::vector<float>;

/// Experts and weights of every token: row t of `ids` (whole numbers) and `weights`.
struct Choice {
  Array ids, weights;
};

Vector scoresOf(const float* logits, int64_t experts, Scoring scoring) {
  Vector scores(logits, logits + experts);
  switch (scoring) {
  case Scoring::softmax: {
    const float largest = *std::max_element(logits, logits + experts);
    double sum = 0;
    for (float x : scores)
      sum += std::exp(static_cast<double>(x) - largest);
    for (float& x : scores)
      x = static_cast<float>(std::exp(static_cast<double>(x) - largest) / sum);
    break;
  }
  case Scoring::sigmoid:
    for (float& x : scores)
      x = static_cast<float>(1 / (1 + std::exp(-static_cast<double>(x))));
    break;
  case Scoring::softmax_selected:
    break;
  case Scoring::sqrt_softplus:
    for (float& x : scores)
      x = static_cast<float>(std::sqrt(std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(static_cast<double>(x))))));
    break;
  }
  return scores;
}

/// The `count` best of `candidates` by `key`, best first; of equal ones the lower number. What is no number is worst.
std::vector<int64_t> best(std::vector<int64_t> candidates, const Vector& key, int64_t count) {
  auto rank = [&](int64_t i) { return std::isnan(key[i]) ? -std::numeric_limits<float>::infinity() : key[i]; };
  std::sort(candidates.begin(), candidates.end(),
            [&](int64_t a, int64_t b) { return rank(a) != rank(b) ? rank(a) > rank(b) : a < b; });
  candidates.resize(std::min<size_t>(candidates.size(), count));
  return candidates;
}

/// Experts of the groups that may be chosen from, ascending.
std::vector<int64_t> openExperts(const Vector& key, RoutingAttr routing) {
  const int64_t experts = static_cast<int64_t>(key.size()), size = experts / routing.getGroups();
  std::vector<int64_t> groups(routing.getGroups());
  std::iota(groups.begin(), groups.end(), 0);
  if (routing.getGroups() > 1) {
    Vector score;
    for (int64_t group : groups) {
      std::vector<int64_t> members(size);
      std::iota(members.begin(), members.end(), group * size);
      float sum = 0;
      for (int64_t expert : best(members, key, 2))
        sum += key[expert];
      score.push_back(sum);
    }
    groups = best(groups, score, routing.getGroupsUsed());
    std::sort(groups.begin(), groups.end());
  }
  std::vector<int64_t> open;
  for (int64_t group : groups)
    for (int64_t i = 0; i < size; ++i)
      open.push_back(group * size + i);
  return open;
}

/// Turns the chosen experts' scores into their weights.
void weigh(Vector& weights, RoutingAttr routing) {
  double sum = 0;
  if (routing.getScoring() == Scoring::softmax_selected) {
    const float largest = *std::max_element(weights.begin(), weights.end());
    for (float x : weights)
      sum += std::exp(static_cast<double>(x) - largest);
    for (float& x : weights)
      x = static_cast<float>(std::exp(static_cast<double>(x) - largest) / sum);
  }
  sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double divisor = 1;
  if (FloatAttr epsilon = routing.getNormEpsilon())
    divisor = sum + epsilon.getValueAsDouble();
  else if (FloatAttr minimum = routing.getNormMinimum())
    divisor = std::fmax(sum, minimum.getValueAsDouble());
  for (float& x : weights)
    x = static_cast<float>(x / divisor * routing.getFactor());
}

/// Whether the mask in force lets expert `e` be chosen.
using IsOpen = std::function<bool(int64_t e)>;

Choice route(const Array& logits, const Vector* bias, const Vector* scales, RoutingAttr routing, const IsOpen& isOpen) {
  const int64_t k = routing.getTopK();
  Choice choice{Array(logits.rows, k), Array(logits.rows, k)};
  for (int64_t t = 0; t < logits.rows; ++t) {
    const Vector scores = scoresOf(logits.row(t), logits.cols, routing.getScoring());
    Vector key = scores;
    for (size_t e = 0; bias && e < key.size(); ++e)
      key[e] += (*bias)[e];
    for (size_t e = 0; e < key.size(); ++e)
      if (!isOpen(e))
        key[e] = -std::numeric_limits<float>::infinity();
    std::vector<int64_t> candidates = openExperts(key, routing);
    std::erase_if(candidates, [&](int64_t e) { return !isOpen(e); });
    std::vector<int64_t> chosen = best(std::move(candidates), key, k);
    Vector weights;
    for (int64_t e : chosen)
      weights.push_back(scores[e]);
    if (!weights.empty())
      weigh(weights, routing);
    // Choices that are left over name experts, but count for nothing.
    weights.resize(k);
    for (int64_t e = 0; static_cast<int64_t>(chosen.size()) < k; ++e)
      if (!llvm::is_contained(chosen, e))
        chosen.push_back(e);
    for (int64_t j = 0; j < k; ++j) {
      choice.ids.row(t)[j] = static_cast<float>(chosen[j]);
      choice.weights.row(t)[j] = weights[j] * (scales ? (*scales)[chosen[j]] : 1.0f);
    }
  }
  return choice;
}

StatusOr<Choice> route(Operation* op, Frame& frame, const Array& logits, Value bias, Value scales,
                       RoutingAttr routing) {
  std::shared_ptr<const Vector> biasValues, scaleValues;
  if (bias) {
    CORTIQ_ASSIGN_OR_RETURN(biasValues, frame.weight(bias));
  }
  if (scales) {
    CORTIQ_ASSIGN_OR_RETURN(scaleValues, frame.weight(scales));
  }
  const auto attr = op->getAttrOfType<MaskAttr>(kMaskAttr);
  const formats::OverlayMask* mask = attr ? frame.overlay().mask() : nullptr;
  return route(logits, biasValues.get(), scaleValues.get(), routing,
               [&](int64_t e) { return !mask || mask->expert(attr.getLayer(), e); });
}

StatusOr<Array> linear(Frame& frame, const Array& x, Value weight, Value bias) {
  CORTIQ_ASSIGN_OR_RETURN(const auto matrix, frame.weight(weight));
  Array y = multiply(x, matrix->data(), cast<WeightType>(weight.getType()).getRows());
  if (bias) {
    CORTIQ_ASSIGN_OR_RETURN(const auto values, frame.weight(bias));
    addBias(y, *values);
  }
  return y;
}

/// down(activation(gate(x)) * up(x)).
StatusOr<Array> gatedBlock(Frame& frame, const Array& x, const Value (&weights)[3], const Value (&biases)[3],
                           Activation activation, ActivationNumbers numbers) {
  CORTIQ_ASSIGN_OR_RETURN(Array gate, linear(frame, x, weights[0], biases[0]));
  CORTIQ_ASSIGN_OR_RETURN(const Array up, linear(frame, x, weights[1], biases[1]));
  applyGlu(gate, up, activation, numbers);
  return linear(frame, gate, weights[2], biases[2]);
}

template <class Op>
StatusOr<Array> runExperts(Frame& frame, Op op, const Array& x, const Choice& choice) {
  const int64_t k = choice.ids.cols;
  std::vector<Array> parts(k, Array(x.rows, x.cols)); // of every choice
  for (int64_t e = 0; e < static_cast<int64_t>(op.getGates().size()); ++e) {
    std::vector<std::pair<int64_t, int64_t>> users; // token, choice
    for (int64_t t = 0; t < x.rows; ++t)
      for (int64_t j = 0; j < k; ++j)
        if (choice.ids.row(t)[j] == static_cast<float>(e))
          users.emplace_back(t, j);
    if (users.empty())
      continue;
    Array own(users.size(), x.cols);
    for (size_t i = 0; i < users.size(); ++i)
      std::copy_n(x.row(users[i].first), x.cols, own.row(i));
    auto biasOf = [&](OperandRange biases) { return biases.empty() ? Value() : biases[e]; };
    CORTIQ_ASSIGN_OR_RETURN(
        const Array y, gatedBlock(frame, own, {op.getGates()[e], op.getUps()[e], op.getDowns()[e]},
                                  {biasOf(op.getGateBiases()), biasOf(op.getUpBiases()), biasOf(op.getDownBiases())},
                                  op.getActivation(), activationNumbers(op)));
    for (size_t i = 0; i < users.size(); ++i)
      std::copy_n(y.row(i), x.cols, parts[users[i].second].row(users[i].first));
  }
  Array out(x.rows, x.cols);
  for (int64_t t = 0; t < x.rows; ++t)
    for (int64_t i = 0; i < x.cols; ++i) {
      double sum = 0;
      for (int64_t j = 0; j < k; ++j)
        sum += static_cast<double>(choice.weights.row(t)[j]) * parts[j].row(t)[i];
      out.row(t)[i] = static_cast<float>(sum);
    }
  return out;
}

} // namespace

Status referenceMoeRoute(Operation* op, Frame& frame) {
  auto moe = cast<MoeRouteOp>(op);
  CORTIQ_ASSIGN_OR_RETURN(Choice choice, route(op, frame, frame.value(moe.getLogits()), moe.getBias(),
                                               moe.getExpertScales(), moe.getRouting()));
  frame.set(moe.getIds(), std::move(choice.ids));
  frame.set(moe.getWeights(), std::move(choice.weights));
  return {};
}

Status referenceMoeExperts(Operation* op, Frame& frame) {
  auto moe = cast<MoeExpertsOp>(op);
  const Choice choice{frame.value(moe.getIds()), frame.value(moe.getWeights())};
  CORTIQ_ASSIGN_OR_RETURN(Array out, runExperts(frame, moe, frame.value(moe.getX()), choice));
  frame.set(moe.getResult(), std::move(out));
  return {};
}

// Every step rounds to f32 as the unfused operations do, so that fusing changes no bit.
Status referenceFusedMoe(Operation* op, Frame& frame) {
  auto moe = cast<FusedMoeOp>(op);
  const Array& x = frame.value(moe.getX());
  Array logits = frame.value(moe.getRouterX());
  if (moe.getRouter()) {
    CORTIQ_ASSIGN_OR_RETURN(logits, linear(frame, logits, moe.getRouter(), moe.getRouterBias()));
  }
  CORTIQ_ASSIGN_OR_RETURN(const Choice choice,
                          route(op, frame, logits, moe.getBias(), moe.getExpertScales(), moe.getRouting()));
  CORTIQ_ASSIGN_OR_RETURN(Array out, runExperts(frame, moe, x, choice));
  if (!moe.getShared().empty()) {
    CORTIQ_ASSIGN_OR_RETURN(Array shared,
                            gatedBlock(frame, x, {moe.getShared()[0], moe.getShared()[1], moe.getShared()[2]},
                                       {Value(), Value(), Value()}, moe.getActivation(), activationNumbers(moe)));
    if (moe.getSharedGate()) {
      CORTIQ_ASSIGN_OR_RETURN(const Array gate, linear(frame, x, moe.getSharedGate(), Value()));
      for (int64_t t = 0; t < shared.rows; ++t)
        for (int64_t i = 0; i < shared.cols; ++i)
          shared.row(t)[i] = static_cast<float>(shared.row(t)[i] * (1 / (1 + std::exp(-double{gate.row(t)[0]}))));
    }
    for (size_t i = 0; i < out.data.size(); ++i)
      out.data[i] += shared.data[i];
  }
  if (moe.getResidual()) {
    const Array& residual = frame.value(moe.getResidual());
    for (size_t i = 0; i < out.data.size(); ++i)
      out.data[i] += residual.data[i];
  }
  frame.set(moe.getResult(), std::move(out));
  return {};
}

} // namespace cortiq::cmf
