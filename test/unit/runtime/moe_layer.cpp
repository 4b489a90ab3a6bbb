#include "test/unit/runtime/moe_layer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace cortiq::test {

using artifact::BufferKind;

MoeLayer::MoeLayer(const MoeCase& c) : c_(c), experts_(c.widths.size()) {
  make("router", experts_ * c.hidden);
  for (uint64_t e = 0; e < experts_; ++e) {
    make("gate" + std::to_string(e), c.widths[e] * c.hidden);
    make("up" + std::to_string(e), c.widths[e] * c.hidden);
    make("down" + std::to_string(e), c.hidden * c.widths[e]);
    make("gate_bias" + std::to_string(e), c.widths[e]);
    make("down_bias" + std::to_string(e), c.hidden);
  }
  make("bias", experts_);
  make("scales", experts_);
  make("router_bias", experts_);
  for (uint64_t e = 0; e < experts_; ++e)
    weights_["router_bias"][e] = e < c.closed ? -1000.0f : 0.0f;
  make("shared0", kShared * c.hidden);
  make("shared1", kShared * c.hidden);
  make("shared2", c.hidden * kShared);
  make("shared_gate", c.hidden);
}

std::vector<float> MoeLayer::input(uint64_t tokens) {
  std::vector<float> x(tokens * c_.hidden);
  for (float& value : x)
    value = normal_(random_);
  return x;
}

void MoeLayer::make(const std::string& name, uint64_t count) {
  std::vector<float>& values = weights_[name];
  values.resize(count);
  for (float& value : values)
    value = 0.3f * normal_(random_);
}

MoeLayer::Row MoeLayer::product(const std::string& name, const Row& x) const {
  const std::vector<float>& w = weights_.at(name);
  Row y(w.size() / x.size());
  for (size_t r = 0; r < y.size(); ++r)
    for (size_t i = 0; i < x.size(); ++i)
      y[r] += static_cast<double>(w[r * x.size() + i]) * x[i];
  return y;
}

void MoeLayer::add(Row& y, const std::string& name) const {
  for (size_t i = 0; i < y.size(); ++i)
    y[i] += weights_.at(name)[i];
}

MoeLayer::Row MoeLayer::block(const std::string& gate, const std::string& up, const std::string& down, const Row& x,
                              const std::string& expert) const {
  Row a = product(gate, x);
  if (!expert.empty())
    add(a, "gate_bias" + expert);
  const Row b = product(up, x);
  for (size_t i = 0; i < a.size(); ++i)
    a[i] = a[i] / (1 + std::exp(-a[i])) * b[i];
  Row y = product(down, a);
  if (!expert.empty())
    add(y, "down_bias" + expert);
  return y;
}

Status MoeLayer::write(const std::string& path, bool early) {
  ArtifactBuilder b(kMoeBatch);
  const uint32_t x = b.slot(c_.hidden), logits = b.slot(experts_), ids = b.slot(c_.choices, BufferKind::I32),
                 weights = b.slot(c_.choices), plan = b.slot(2 * experts_ + 2 + 2 * c_.choices, BufferKind::I32);
  const auto k = static_cast<uint32_t>(c_.choices);
  const uint64_t widest = *std::max_element(c_.widths.begin(), c_.widths.end());
  const uint32_t pairs = b.slot(c_.hidden, BufferKind::F32, k);
  b.slot(widest, BufferKind::F32, k); // room behind the pairs
  const uint32_t gate = b.slot(widest, BufferKind::F32, k), up = b.slot(widest, BufferKind::F32, k),
                 gated = b.slot(widest, BufferKind::F32, k), down = b.slot(c_.hidden, BufferKind::F32, k),
                 out = b.slot(c_.hidden);
  if (!early)
    b.program.buffers[gated]->offset_per_token = b.program.buffers[pairs]->offset_per_token;
  if (c_.over_plan)
    b.program.buffers[gate]->offset_per_token = b.program.buffers[plan]->offset_per_token;
  auto matrix = [&](const std::string& name, uint64_t rows, uint64_t cols) {
    return b.matrix(name, rows, cols, weights_.at(name));
  };
  auto product = [&](uint32_t weight, uint32_t input, uint32_t output, uint32_t bias = 0xffffffff) {
    b.products({b.matmul(weight, input, output, bias)});
  };
  product(matrix("router", experts_, c_.hidden), x, logits, b.vector("router_bias", weights_.at("router_bias")));
  artifact::MoeRouteOpT route;
  route.logits = logits;
  route.ids = ids;
  route.weights = weights;
  route.scoring = c_.scoring;
  route.normalize = c_.normalize;
  route.norm_epsilon = 1e-6;
  route.scale = c_.scale;
  route.groups = static_cast<uint32_t>(c_.groups);
  route.groups_used = static_cast<uint32_t>(c_.groups_used);
  if (c_.bias)
    route.bias = b.vector("bias", weights_.at("bias"));
  if (c_.scales)
    route.scales = b.vector("scales", weights_.at("scales"));
  b.stage(std::move(route));
  artifact::MoePlanOpT sort;
  sort.ids = ids;
  sort.plan = plan;
  sort.experts = static_cast<uint32_t>(experts_);
  b.stage(std::move(sort));
  artifact::MoeGatherOpT gather;
  gather.plan = plan;
  gather.experts = static_cast<uint32_t>(experts_);
  gather.x = x;
  gather.out = pairs;
  b.stage(std::move(gather));
  auto role = [&](const std::string& name, uint32_t input, uint32_t token, uint32_t output) {
    artifact::MoeMatmulOpT op;
    op.plan = plan;
    for (uint64_t e = 0; e < experts_; ++e) {
      const std::string expert = std::to_string(e);
      const uint64_t width = c_.widths[e];
      const uint32_t weight =
          name == "down" ? matrix(name + expert, c_.hidden, width) : matrix(name + expert, width, c_.hidden);
      const uint32_t bias = c_.biases && name != "up"
                                ? b.vector(name + "_bias" + expert, weights_.at(name + "_bias" + expert))
                                : 0xffffffff;
      op.parts.push_back(std::make_unique<artifact::ExpertPartT>(b.expert(weight, input, token, output, bias)));
    }
    return op;
  };
  artifact::MoeMatmulOpT gates = role("gate", pairs, x, gate), ups = role("up", pairs, x, up);
  b.begin_stage(false);
  b.call(std::move(gates));
  b.call(std::move(ups));
  artifact::MoeGluOpT glu;
  glu.plan = plan;
  glu.gate = gate;
  glu.up = up;
  glu.out = gated;
  glu.widths = c_.widths;
  b.stage(std::move(glu));
  b.stage(role("down", gated, 0xffffffff, down));
  artifact::MoeCombineOpT combine;
  combine.plan = plan;
  combine.experts = static_cast<uint32_t>(experts_);
  combine.weights = weights;
  combine.pairs = down;
  combine.out = out;
  if (c_.residual)
    combine.residual = x;
  if (c_.shared) {
    const uint32_t a = b.slot(kShared), u = b.slot(kShared);
    combine.shared = b.slot(c_.hidden);
    product(matrix("shared0", kShared, c_.hidden), x, a);
    product(matrix("shared1", kShared, c_.hidden), x, u);
    artifact::GluOpT shared;
    shared.gate = a;
    shared.up = u;
    shared.out = a;
    b.stage(std::move(shared));
    product(matrix("shared2", c_.hidden, kShared), a, combine.shared);
    if (c_.shared_gate) {
      combine.shared_gate = b.slot(1);
      product(matrix("shared_gate", 1, c_.hidden), x, combine.shared_gate);
    }
  }
  b.stage(std::move(combine));
  b.program.logits = out;
  b.manifest.vocab = static_cast<uint32_t>(c_.hidden);
  b.manifest.max_context = 64;
  return b.write(path);
}

std::vector<uint64_t> MoeLayer::choose(const Row& key) const {
  auto best = [](std::vector<uint64_t> candidates, auto value, uint64_t count) {
    std::sort(candidates.begin(), candidates.end(),
              [&](uint64_t a, uint64_t b) { return value(a) != value(b) ? value(a) > value(b) : a < b; });
    candidates.resize(std::min<size_t>(candidates.size(), count));
    return candidates;
  };
  const uint64_t size = experts_ / c_.groups;
  auto members = [&](uint64_t group) {
    std::vector<uint64_t> list(size);
    std::iota(list.begin(), list.end(), group * size);
    return list;
  };
  auto expert_key = [&](uint64_t e) { return key[e]; };
  std::vector<uint64_t> groups(c_.groups), open;
  std::iota(groups.begin(), groups.end(), 0);
  for (uint64_t group : best(
           groups,
           [&](uint64_t g) {
             double sum = 0;
             for (uint64_t e : best(members(g), expert_key, 2))
               sum += key[e];
             return sum;
           },
           c_.groups_used))
    for (uint64_t e : members(group))
      open.push_back(e);
  std::sort(open.begin(), open.end());
  return best(open, expert_key, c_.choices);
}

MoeLayer::Row MoeLayer::reference(const float* input) const {
  const Row x(input, input + c_.hidden);
  Row scores = product("router", x);
  add(scores, "router_bias");
  if (c_.scoring == Scoring::Softmax) {
    double sum = 0;
    for (double& s : scores)
      sum += s = std::exp(s);
    for (double& s : scores)
      s /= sum;
  } else if (c_.scoring == Scoring::Sigmoid) {
    for (double& s : scores)
      s = 1 / (1 + std::exp(-s));
  } else if (c_.scoring == Scoring::SqrtSoftplus) {
    for (double& s : scores)
      s = std::sqrt(std::log1p(std::exp(s)));
  }
  Row key = scores;
  if (c_.bias)
    add(key, "bias");
  const std::vector<uint64_t> chosen = choose(key);
  Row weights;
  double sum = 0;
  for (uint64_t e : chosen) {
    weights.push_back(c_.scoring == Scoring::SoftmaxSelected ? std::exp(scores[e]) : scores[e]);
    sum += weights.back();
  }
  Row y(c_.hidden);
  for (size_t j = 0; j < chosen.size(); ++j) {
    const std::string e = std::to_string(chosen[j]);
    double weight = weights[j] * c_.scale;
    if (c_.normalize || c_.scoring == Scoring::SoftmaxSelected)
      weight /= sum;
    if (c_.scales)
      weight *= weights_.at("scales")[chosen[j]];
    const Row part = block("gate" + e, "up" + e, "down" + e, x, c_.biases ? e : "");
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += weight * part[i];
  }
  if (c_.shared) {
    const double gate = c_.shared_gate ? 1 / (1 + std::exp(-product("shared_gate", x)[0])) : 1;
    const Row part = block("shared0", "shared1", "shared2", x, "");
    for (size_t i = 0; i < y.size(); ++i)
      y[i] += gate * part[i];
  }
  for (size_t i = 0; c_.residual && i < y.size(); ++i)
    y[i] += x[i];
  return y;
}

} // namespace cortiq::test
