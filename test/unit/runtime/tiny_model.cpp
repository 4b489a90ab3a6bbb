#include "test/unit/runtime/tiny_model.h"

#include <algorithm>
#include <cmath>

#include "formats/layout/layout.h"

namespace cortiq::test {
namespace {

constexpr uint64_t kQ = TinyModel::kHeads * TinyModel::kHeadDim, kKv = TinyModel::kKvHeads * TinyModel::kHeadDim;

std::string layer_name(int layer, const char* name) {
  return "l" + std::to_string(layer) + "." + name;
}

float frequency(uint64_t pair) {
  return static_cast<float>(std::pow(1000.0, -static_cast<double>(pair) / 8));
}

void normalise(double* x, uint64_t count, double eps, const float* weight) {
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i)
    sum += x[i] * x[i];
  const double factor = 1 / std::sqrt(sum / static_cast<double>(count) + eps);
  for (uint64_t i = 0; i < count; ++i)
    x[i] *= factor * weight[i];
}

void rotate(double* x, uint64_t position) {
  for (uint64_t i = 0; i < TinyModel::kPairs; ++i) {
    const double angle = static_cast<double>(position) * frequency(i);
    const double a = x[i], b = x[i + TinyModel::kPairs];
    x[i] = a * std::cos(angle) - b * std::sin(angle);
    x[i + TinyModel::kPairs] = b * std::cos(angle) + a * std::sin(angle);
  }
}

} // namespace

TinyModel::TinyModel(float key_gain, uint64_t seed) : random_(seed) {
  make("embed", kVocab * kHidden, 1);
  for (int layer = 0; layer < 2; ++layer) {
    auto own = [&](const char* name, uint64_t count, float scale, float center = 0) -> std::vector<float>& {
      return make(layer_name(layer, name), count, scale, center);
    };
    own("norm1", kHidden, 0.3f, 1);
    own("q", kQ * kHidden, 0.3f);
    own("q_bias", kQ, 0.5f);
    for (float& value : own("k", kKv * kHidden, 0.3f))
      value *= layer == 1 ? key_gain : 1;
    own("v", kKv * kHidden, 0.3f);
    own("q_norm", kHeadDim, 0.3f, 1);
    own("k_norm", kHeadDim, 0.3f, layer == 1 ? key_gain : 1);
    own("o", kHidden * kQ, 0.1f);
    own("norm2", kHidden, 0.3f, 1);
    own("gate", kFfn * kHidden, 0.3f);
    own("up", kFfn * kHidden, 0.3f);
    own("down", kHidden * kFfn, 0.3f);
  }
  make("sinks", kHeads, 1);
  make("norm", kHidden, 0.3f, 1);
}

std::vector<float>& TinyModel::make(const std::string& name, uint64_t count, float scale, float center) {
  std::vector<float>& out = weights_[name];
  for (uint64_t i = 0; i < count; ++i) {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    out.push_back(center + scale * (static_cast<float>(random_ >> 40) / 8388608.0f - 1));
  }
  return out;
}

std::vector<double> TinyModel::product(const std::string& name, uint64_t rows, const std::vector<double>& x) const {
  const std::vector<float>& w = weights_.at(name);
  std::vector<double> out(rows, 0);
  for (uint64_t r = 0; r < rows; ++r)
    for (uint64_t c = 0; c < x.size(); ++c)
      out[r] += static_cast<double>(w[r * x.size() + c]) * x[c];
  return out;
}

std::vector<double> TinyModel::norm(const std::vector<double>& x, const std::string& weight) const {
  std::vector<double> out = x;
  normalise(out.data(), out.size(), kEps, weights_.at(weight).data());
  return out;
}

std::vector<double> TinyModel::reference(std::span<const uint32_t> tokens) const {
  const std::vector<double> rows = hidden_reference(tokens);
  std::vector<double> logits;
  for (size_t t = 0; t < tokens.size(); ++t) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(t * kHidden);
    for (const double value : product("embed", kVocab, {row, row + kHidden}))
      logits.push_back(kLogitCap * std::tanh(value * 0.5 / kLogitCap));
  }
  return logits;
}

std::vector<double> TinyModel::hidden_reference(std::span<const uint32_t> tokens) const {
  std::vector<double> out;
  std::vector<std::vector<double>> keys[2], values[2];
  for (uint64_t position = 0; position < tokens.size(); ++position) {
    const float* row = weights_.at("embed").data() + tokens[position] * kHidden;
    std::vector<double> x(row, row + kHidden);
    for (int layer = 0; layer < 2; ++layer) {
      auto own = [&](const char* name) { return layer_name(layer, name); };
      const std::vector<double> n = norm(x, own("norm1"));
      std::vector<double> q = product(own("q"), kQ, n), k = product(own("k"), kKv, n), v = product(own("v"), kKv, n);
      for (uint64_t i = 0; i < kQ; ++i)
        q[i] += weights_.at(own("q_bias"))[i];
      for (uint64_t head = 0; head < kHeads; ++head) {
        normalise(&q[head * kHeadDim], kHeadDim, kEps, weights_.at(own("q_norm")).data());
        rotate(&q[head * kHeadDim], position);
      }
      for (uint64_t head = 0; head < kKvHeads; ++head) {
        normalise(&k[head * kHeadDim], kHeadDim, kEps, weights_.at(own("k_norm")).data());
        rotate(&k[head * kHeadDim], position);
      }
      keys[layer].push_back(k);
      values[layer].push_back(v);
      std::vector<double> attended(kQ, 0);
      const uint64_t first = layer == 1 && position + 1 > kWindow ? position + 1 - kWindow : 0;
      for (uint64_t head = 0; head < kHeads; ++head) {
        const uint64_t kv = head / (kHeads / kKvHeads) * kHeadDim;
        std::vector<double> scores;
        double top = layer == 1 ? weights_.at("sinks")[head] : -1e300;
        for (uint64_t p = first; p <= position; ++p) {
          double score = 0;
          for (uint64_t i = 0; i < kHeadDim; ++i)
            score += q[head * kHeadDim + i] * keys[layer][p][kv + i];
          score *= 0.25;
          if (layer == 0)
            score = kScoreCap * std::tanh(score / kScoreCap);
          scores.push_back(score);
          top = std::max(top, score);
        }
        double sum = layer == 1 ? std::exp(weights_.at("sinks")[head] - top) : 0;
        for (double& score : scores)
          sum += score = std::exp(score - top);
        for (uint64_t p = first; p <= position; ++p)
          for (uint64_t i = 0; i < kHeadDim; ++i)
            attended[head * kHeadDim + i] += scores[p - first] / sum * values[layer][p][kv + i];
      }
      if (masked_)
        std::fill_n(attended.begin() + kHeadDim, kHeadDim, 0);
      const std::vector<double> o = product(own("o"), kHidden, attended);
      for (uint64_t i = 0; i < kHidden; ++i)
        x[i] += o[i];
      const std::vector<double> n2 = norm(x, own("norm2"));
      std::vector<double> gate = product(own("gate"), kFfn, n2);
      const std::vector<double> up = product(own("up"), kFfn, n2);
      for (uint64_t i = 0; i < kFfn; ++i)
        gate[i] = (layer == 0
                       ? gate[i] / (1 + std::exp(-gate[i]))
                       : 0.5 * gate[i] *
                             (1 + std::tanh(0.7978845608028654 * (gate[i] + 0.044715 * gate[i] * gate[i] * gate[i])))) *
                  up[i];
      if (masked_)
        for (uint64_t i = 1; i < kFfn; i += 2)
          gate[i] = 0;
      const std::vector<double> down = product(own("down"), kHidden, gate);
      for (uint64_t i = 0; i < kHidden; ++i)
        x[i] += down[i];
    }
    const std::vector<double> normed = norm(x, "norm");
    out.insert(out.end(), normed.begin(), normed.end());
  }
  return out;
}

void TinyModel::build(ArtifactBuilder& b) const {
  const uint32_t x = b.slot(kHidden), n = b.slot(kHidden), q = b.slot(kQ), k = b.slot(kKv), v = b.slot(kKv),
                 attended = b.slot(kQ), gate = b.slot(kFfn), up = b.slot(kFfn), act = b.slot(kFfn),
                 logits = b.slot(kVocab);
  auto matrix = [&](const std::string& name, uint64_t rows) {
    const std::vector<float>& w = weights_.at(name);
    return b.matrix(name, rows, w.size() / rows, w);
  };
  auto vector = [&](const std::string& name) { return b.vector(name, weights_.at(name)); };
  auto norm = [&](uint32_t weight, bool head = false) {
    artifact::NormOpT op;
    op.input = x;
    op.weight = weight;
    op.eps = kEps;
    op.out = n;
    b.stage(std::move(op), head);
  };
  auto rope = std::make_unique<artifact::RopeTableT>();
  for (uint64_t i = 0; i < kPairs; ++i)
    rope->inverse_frequencies.push_back(frequency(i));
  b.program.rope_tables.push_back(std::move(rope));

  const uint32_t embed = matrix("embed", kVocab);
  artifact::EmbedOpT look_up;
  look_up.weight = embed;
  look_up.out = x;
  b.stage(std::move(look_up));
  for (int layer = 0; layer < 2; ++layer) {
    auto own = [&](const char* name) { return layer_name(layer, name); };
    b.kv_layer(kKvHeads, kHeadDim, layer == 1 ? kWindow : 0);
    norm(vector(own("norm1")));
    b.products({b.matmul(matrix(own("q"), kQ), n, q, vector(own("q_bias"))), b.matmul(matrix(own("k"), kKv), n, k),
                b.matmul(matrix(own("v"), kKv), n, v)});
    artifact::AttentionPrepOpT prep;
    prep.q = q;
    prep.k = k;
    prep.v = v;
    prep.layer = static_cast<uint32_t>(layer);
    prep.heads = kHeads;
    prep.head_dim = kHeadDim;
    prep.q_norm = vector(own("q_norm"));
    prep.k_norm = vector(own("k_norm"));
    prep.norm_eps = kEps;
    prep.rope = 0;
    b.stage(std::move(prep));
    artifact::AttentionOpT attention;
    attention.q = q;
    attention.layer = static_cast<uint32_t>(layer);
    attention.heads = kHeads;
    attention.head_dim = kHeadDim;
    attention.scale = 0.25f;
    attention.softcap = layer == 0 ? kScoreCap : 0;
    if (layer == 1)
      attention.sinks = vector("sinks");
    attention.out = attended;
    b.stage(std::move(attention));
    b.products({b.matmul(matrix(own("o"), kHidden), attended, x, 0xffffffff, x)});
    norm(vector(own("norm2")));
    b.products({b.matmul(matrix(own("gate"), kFfn), n, gate), b.matmul(matrix(own("up"), kFfn), n, up)});
    artifact::GluOpT glu;
    glu.gate = gate;
    glu.up = up;
    glu.activation = layer == 0 ? artifact::Activation::Silu : artifact::Activation::GeluTanh;
    glu.out = act;
    b.stage(std::move(glu));
    b.products({b.matmul(matrix(own("down"), kHidden), act, x, 0xffffffff, x)});
  }
  norm(vector("norm"), true);
  b.products({b.matmul(embed, n, logits)}, true);
  artifact::LogitsOpT cap;
  cap.input = logits;
  cap.multiplier = 0.5f;
  cap.softcap = kLogitCap;
  b.stage(std::move(cap), true);
  b.program.logits = logits;
  b.manifest.vocab = kVocab;
  b.manifest.hidden = kHidden;
  b.manifest.layers = 2;
  b.manifest.max_context = b.manifest.trained_context = kMaxContext;
}

bool TinyModel::is_replaced(const std::string& name) {
  for (const char* word : {"q_bias", ".q", "down", "gate", "norm2", "k_norm", "sinks", "embed"})
    if (name.ends_with(word))
      return true;
  return false;
}

TinyModel TinyModel::mixed(std::span<const std::pair<const TinyModel*, float>> weights) const {
  TinyModel out = *this;
  for (auto& [name, values] : out.weights_) {
    if (!is_replaced(name))
      continue;
    std::fill(values.begin(), values.end(), 0);
    for (const auto& [model, weight] : weights)
      for (size_t i = 0; i < values.size(); ++i)
        values[i] += weight * model->weights_.at(name)[i];
  }
  return out;
}

namespace {

/// Calls `change` with every weight index of a call.
template <class Change>
void change_weights(artifact::OpUnion& op, Change change) {
  if (auto* embed = op.AsEmbedOp())
    embed->weight = change(embed->weight);
  if (auto* norm = op.AsNormOp())
    norm->weight = change(norm->weight);
  if (auto* attention = op.AsAttentionOp())
    attention->sinks = change(attention->sinks);
  if (auto* prep = op.AsAttentionPrepOp()) {
    prep->q_norm = change(prep->q_norm);
    prep->k_norm = change(prep->k_norm);
  }
  if (auto* matmul = op.AsMatmulOp())
    for (auto& part : matmul->parts) {
      part->weight = change(part->weight);
      part->bias = change(part->bias);
    }
}

} // namespace

void TinyModel::add_skills(ArtifactBuilder& b, std::span<const TinyModel> skills) const {
  // By the model's own weight: what each skill has in its place, and their mixture behind it.
  std::map<uint32_t, std::vector<uint32_t>> replaced;
  const size_t own = b.manifest.weights.size();
  for (uint32_t i = 0; i < own; ++i) {
    const std::string name = b.manifest.weights[i]->name;
    const uint64_t rows = b.manifest.weights[i]->rows, cols = b.manifest.weights[i]->cols;
    const bool matrix = b.manifest.weights[i]->layout == static_cast<uint8_t>(formats::LayoutId::kR16);
    if (!is_replaced(name))
      continue;
    for (size_t s = 0; s < skills.size(); ++s) {
      const std::vector<float>& values = skills[s].weights_.at(name);
      const std::string other = "skill.s" + std::to_string(s) + "." + name;
      replaced[i].push_back(matrix ? b.matrix(other, rows, cols, values) : b.vector(other, values));
    }
    const std::vector<uint32_t> alternatives = replaced[i];
    replaced[i].push_back(b.mixture("blend." + name, i, alternatives));
  }
  for (auto& stage : b.program.stages)
    for (auto& call : stage->calls) {
      bool changes = false;
      change_weights(call->op, [&](uint32_t w) { return changes = changes || replaced.contains(w), w; });
      for (size_t s = 0; changes && s <= skills.size(); ++s) {
        auto alternative = std::make_unique<artifact::CallT>();
        alternative->op = call->op;
        alternative->skill = s < skills.size() ? static_cast<uint32_t>(s) : 0xffffffff;
        change_weights(alternative->op, [&](uint32_t w) { return replaced.contains(w) ? replaced.at(w)[s] : w; });
        call->alternatives.push_back(std::move(alternative));
      }
      if (call->op.type == artifact::Op::GluOp || call->op.type == artifact::Op::AttentionOp) {
        const bool heads = call->op.type == artifact::Op::AttentionOp;
        auto mask = std::make_unique<artifact::MaskBitsT>();
        mask->kind = heads ? artifact::MaskKind::Heads : artifact::MaskKind::Ffn;
        mask->layer = &stage - &b.program.stages[0] < static_cast<std::ptrdiff_t>(b.program.stages.size() / 2) ? 0 : 1;
        mask->group = heads ? kHeadDim : 1;
        for (auto& alternative : call->alternatives)
          alternative->mask = std::make_unique<artifact::MaskBitsT>(*mask);
        call->mask = std::move(mask);
      }
    }
  for (size_t s = 0; s < skills.size(); ++s) {
    b.manifest.skills.push_back(std::make_unique<artifact::SkillT>());
    b.manifest.skills.back()->id = "s" + std::to_string(s);
  }
  for (const bool half : {false, true}) {
    auto mask = std::make_unique<artifact::MaskT>();
    mask->name = half ? "half" : "open";
    mask->layers = mask->ffn_rows = 2;
    mask->ffn_width = kFfn;
    mask->heads = kHeads;
    mask->ffn.assign(2 * kFfn / 8, half ? 0x55 : 0xff);
    mask->head.assign(2, half ? 0x3d : 0x3f);
    b.manifest.masks.push_back(std::move(mask));
  }
}

Status TinyModel::write(const std::string& path, std::span<const TinyModel> skills) {
  ArtifactBuilder builder(kMaxBatch);
  builder.numbers = numbers;
  build(builder);
  if (!skills.empty())
    add_skills(builder, skills);
  builder.targets = targets;
  return builder.write(path);
}

double relative_error(std::span<const float> got, std::span<const double> want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

} // namespace cortiq::test
