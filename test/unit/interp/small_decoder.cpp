#include "test/unit/interp/small_decoder.h"

#include <vector>

namespace cortiq::cmf {

namespace {

constexpr int kHidden = 32, kHeads = 4, kKvHeads = 2, kHeadDim = 8, kWidth = 64;

std::string number(int value) {
  return std::to_string(value);
}
std::string tensor(int features) {
  return "tensor<?x" + number(features) + "xf32>";
}
std::string matrix(int rows, int cols, const std::string& codec) {
  return "!cmf.weight<" + number(rows) + "x" + number(cols) + ", " + codec + ">";
}
std::string vector(int size) {
  return "!cmf.weight<" + number(size) + ", f32>";
}

// Writes operations and hands out the names of their results.
class Text {
public:
  explicit Text(const SmallDecoder& features) : features_(features) {}

  std::string line(const std::string& op) {
    const std::string name = "%v" + number(next_++);
    text += "  " + name + " = " + op + "\n";
    return name;
  }

  std::string linear(const std::string& x, const std::string& name, int rows, int cols, const std::string& codec,
                     bool biased) {
    const std::string type = matrix(rows, cols, codec);
    const std::string w = line("cmf.weight \"" + name + "\" : " + type);
    const std::string d = line("cmf.dequant " + w + " : " + type);
    const std::string y = line("cmf.matmul " + x + ", " + d + " : " + tensor(cols) + ", tensor<" + number(rows) + "x" +
                               number(cols) + "xf32>");
    if (!biased)
      return y;
    const std::string b = line("cmf.weight \"" + name + ".bias\" : " + vector(rows));
    return line("cmf.bias_add " + y + ", " + b + " : " + tensor(rows) + ", " + vector(rows));
  }

  std::string norm(const std::string& x, const std::string& name, int features, int group = 0) {
    const int covered = group != 0 ? group : features;
    const std::string w = line("cmf.weight \"" + name + "\" : " + vector(covered));
    return line("cmf.rms_norm " + x + ", " + w + " {eps = 1.0e-6 : f64, unit_offset" +
                (group != 0 ? ", group = " + number(group) + " : i64" : "") + "} : " + tensor(features) + ", " +
                vector(covered));
  }

  std::string head(std::string x, const std::string& name, int features) {
    if (features_.headNorms)
      x = norm(x, name, features, kHeadDim);
    return line("cmf.rope " + x + " {head_dim = 8 : i64, rope = #rope} : " + tensor(features));
  }

  std::string layer(int i, std::string h) {
    const std::string p = "l" + number(i) + ".";
    const int q = kHeads * kHeadDim, kv = kKvHeads * kHeadDim;
    const std::string x = norm(h, p + "attn_norm", kHidden);
    const std::string qs = head(linear(x, p + "q", q, kHidden, "q8_0", features_.biases), p + "q_norm", q);
    const std::string ks = head(linear(x, p + "k", kv, kHidden, "q4_0", features_.biases), p + "k_norm", kv);
    const std::string vs = linear(x, p + "v", kv, kHidden, "f16", features_.biases);
    const std::string a =
        line("cmf.attention " + qs + ", " + ks + ", " + vs + " {layer = " + number(i) +
             " : i64, heads = 4 : i64, kv_heads = 2 : i64, head_dim = 8 : i64, v_dim = 8 : i64, scale = 0.3 : f64" +
             (features_.window && i == 0 ? ", window = 3 : i64" : "") + "} : " + tensor(q) + ", " + tensor(kv) + ", " +
             tensor(kv) + " -> " + tensor(q));
    std::string o = linear(a, p + "o", kHidden, q, "q8_0", features_.biases);
    if (features_.sandwich)
      o = norm(o, p + "attn_out_norm", kHidden);
    h = line("cmf.add " + h + ", " + o + " : " + tensor(kHidden));
    const std::string f = norm(h, p + "ffn_norm", kHidden);
    const std::string g = linear(f, p + "gate", kWidth, kHidden, "q4_0", false);
    const std::string u = linear(f, p + "up", kWidth, kHidden, "q8_0", false);
    const std::string m = line("cmf.glu silu(" + g + ", " + u + ") : " + tensor(kWidth));
    std::string d = linear(m, p + "down", kHidden, kWidth, "q8_0", false);
    if (features_.sandwich)
      d = norm(d, p + "ffn_out_norm", kHidden);
    return line("cmf.add " + h + ", " + d + " : " + tensor(kHidden));
  }

  std::string text;

private:
  const SmallDecoder& features_;
  int next_ = 0;
};

} // namespace

std::string smallDecoder(const SmallDecoder& features) {
  Text t(features);
  const std::string type = matrix(kSmallVocab, kHidden, "q8_0");
  const std::string e = t.line("cmf.weight \"embed\" : " + type);
  std::string h = t.line("cmf.embed %ids, " + e + " : tensor<?xi32>, " + type);
  for (int i = 0; i < 2; ++i)
    h = t.layer(i, h);
  h = t.norm(h, "norm", kHidden);
  const std::string logits = t.linear(h, features.tied ? "embed" : "head", kSmallVocab, kHidden, "q8_0", false);
  return "#rope = #cmf.rope<inverse_frequencies = [1.0, 0.4, 0.1], magnitude = 1.0 : f32>\n"
         "module attributes {cmf.model = {architecture = \"t\", hidden = 32, layers = 2, vocab = 24, trained_context = "
         "64}} {\n"
         "func.func @forward(%ids: tensor<?xi32>) -> tensor<?x24xf32> {\n" +
         t.text + "  return " + logits + " : tensor<?x24xf32>\n}\n}\n";
}

} // namespace cortiq::cmf
