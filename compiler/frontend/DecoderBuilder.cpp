#include "compiler/frontend/DecoderBuilder.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace cortiq::compiler {

namespace {

class DecoderBuilder {
public:
  DecoderBuilder(MLIRContext& context, const ModelDescription& model)
      : model_(model), builder_(&context), loc_(builder_.getUnknownLoc()) {
    for (const RopeTable& table : model.ropes)
      ropes_.push_back(table.inverseFrequencies.empty()
                           ? cmf::RopeAttr()
                           : cmf::RopeAttr::get(&context, builder_.getDenseF32ArrayAttr(table.inverseFrequencies),
                                                builder_.getF32FloatAttr(table.magnitude)));
  }

  OwningOpRef<ModuleOp> build() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc_);
    (*module)->setAttr(cmf::kModelAttr, modelAttr());
    builder_.setInsertionPointToEnd(module->getBody());
    const auto ids = RankedTensorType::get({ShapedType::kDynamic}, builder_.getI32Type());
    const auto logits = activations(model_.vocab);
    auto forward = builder_.create<func::FuncOp>(loc_, cmf::kForwardName, builder_.getFunctionType({ids}, {logits}));
    Block* body = forward.addEntryBlock();
    builder_.setInsertionPointToStart(body);

    Value h = builder_.create<cmf::EmbedOp>(loc_, body->getArgument(0), weight(kEmbedding),
                                            builder_.getF64FloatAttr(model_.embedScale));
    for (size_t i = 0; i < model_.layers.size(); ++i)
      h = layer(i, h);
    builder_.create<func::ReturnOp>(loc_, head(h));
    return module;
  }

private:
  static constexpr const char* kEmbedding = "model.embed_tokens.weight";

  RankedTensorType activations(int64_t features) {
    return RankedTensorType::get({ShapedType::kDynamic, features}, builder_.getF32Type());
  }

  DictionaryAttr modelAttr() {
    auto number = [&](StringRef key, int64_t value) {
      return builder_.getNamedAttr(key, builder_.getI64IntegerAttr(value));
    };
    return builder_.getDictionaryAttr(
        {builder_.getNamedAttr("architecture", builder_.getStringAttr(model_.architecture)),
         builder_.getNamedAttr("name", builder_.getStringAttr(model_.name)), number("hidden", model_.hidden),
         number("layers", model_.layers.size()), number("vocab", model_.vocab),
         number("trained_context", model_.trainedContext)});
  }

  // The weight's value, created where it is first needed; null when the model has none of that name.
  Value weight(const std::string& name) {
    if (Value known = values_.lookup(name))
      return known;
    const WeightRef* ref = model_.find(name);
    if (!ref)
      return {};
    const formats::Tensor& tensor = *ref->tensor;
    MLIRContext* context = builder_.getContext();
    const auto type = cmf::WeightType::get(context, ref->shape, tensor.codec->id);
    const auto source = cmf::SourceAttr::get(context, tensor.file, tensor.offset, tensor.data.size());
    const int64_t fileRows = ref->shape.size() == 2 ? tensor.rows() : tensor.cols();
    cmf::RowsAttr rows;
    if (ref->first != 0 || ref->deinterleave != 0 || fileRows != ref->shape[0])
      rows = cmf::RowsAttr::get(context, fileRows, ref->first, ref->deinterleave);
    Value value = builder_.create<cmf::WeightOp>(loc_, type, name, source, rows);
    values_[name] = value;
    return value;
  }

  // A whole linear layer, `name`.weight with `name`.bias if there is one.
  Value linear(Value x, const std::string& name, const std::string& weightName = {}) {
    Value decoded = builder_.create<cmf::DequantOp>(loc_, weight(weightName.empty() ? name + ".weight" : weightName));
    Value y = builder_.create<cmf::MatmulOp>(loc_, x, decoded);
    if (Value bias = weight(name + ".bias"))
      y = builder_.create<cmf::BiasAddOp>(loc_, y, bias);
    return y;
  }

  // The norm `name`.weight, over whole rows or groups; `x` itself when the model has no such norm.
  Value norm(Value x, const std::string& name, int64_t group = 0) {
    Value factors = weight(name + ".weight");
    return factors ? rmsNorm(x, factors, group) : x;
  }

  Value rmsNorm(Value x, Value factors, int64_t group) {
    return builder_.create<cmf::RmsNormOp>(loc_, x, factors, builder_.getF64FloatAttr(model_.eps),
                                           factors && model_.unitOffsetNorms ? builder_.getUnitAttr() : UnitAttr(),
                                           group != 0 ? builder_.getI64IntegerAttr(group) : IntegerAttr());
  }

  // Norm of each head and rotation, in the order that the model wants.
  Value headChain(Value x, const LayerDescription& layer, const std::string& normName) {
    if (!model_.qkNormAfterRope)
      x = norm(x, normName, layer.headDim);
    if (cmf::RopeAttr rope = ropes_[layer.rope])
      x = builder_.create<cmf::RopeOp>(loc_, x, builder_.getI64IntegerAttr(layer.headDim), rope);
    if (model_.qkNormAfterRope)
      x = norm(x, normName, layer.headDim);
    return x;
  }

  Value attention(int64_t index, const LayerDescription& layer, Value x) {
    auto name = [&](StringRef suffix) { return layerName(index, "self_attn." + suffix.str()); };
    Value q = headChain(linear(x, name("q_proj")), layer, name("q_norm"));
    Value k = headChain(linear(x, name("k_proj")), layer, name("k_norm"));
    Value v = linear(x, name("v_proj"));
    if (model_.valueNorm)
      v = rmsNorm(v, Value(), layer.vDim);
    auto number = [&](int64_t value) { return builder_.getI64IntegerAttr(value); };
    Value mixed = builder_.create<cmf::AttentionOp>(
        loc_, activations(layer.heads * layer.vDim), q, k, v, weight(name("sinks")), number(index), number(layer.heads),
        number(layer.kvHeads), number(layer.headDim), number(layer.vDim),
        builder_.getF64FloatAttr(model_.attentionScale), layer.window ? number(*layer.window) : IntegerAttr(),
        model_.attentionSoftcap != 0 ? builder_.getF64FloatAttr(model_.attentionSoftcap) : FloatAttr());
    return linear(mixed, name("o_proj"));
  }

  Value feedForward(int64_t index, Value x) {
    Value gate = linear(x, layerName(index, "mlp.gate_proj"));
    Value up = linear(x, layerName(index, "mlp.up_proj"));
    Value gated =
        builder_.create<cmf::GluOp>(loc_, gate, up, cmf::ActivationAttr::get(builder_.getContext(), model_.activation));
    return linear(gated, layerName(index, "mlp.down_proj"));
  }

  // A layer with `pre_feedforward_layernorm` is a sandwich: the norm after attention then belongs to its output.
  Value layer(int64_t index, Value h) {
    auto name = [&](StringRef suffix) { return layerName(index, suffix); };
    const bool sandwich = model_.find(name("pre_feedforward_layernorm.weight")) != nullptr;
    Value mixed = attention(index, model_.layers[index], norm(h, name("input_layernorm")));
    if (sandwich)
      mixed = norm(mixed, name("post_attention_layernorm"));
    h = builder_.create<cmf::AddOp>(loc_, h, mixed);
    Value f = feedForward(index, norm(h, name(sandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm")));
    if (sandwich)
      f = norm(f, name("post_feedforward_layernorm"));
    return builder_.create<cmf::AddOp>(loc_, h, f);
  }

  Value head(Value h) {
    h = norm(h, "model.norm");
    Value logits = linear(h, "lm_head", model_.find("lm_head.weight") ? "" : kEmbedding);
    if (model_.logitScale != 1)
      logits = builder_.create<cmf::ScaleOp>(loc_, logits, builder_.getF64FloatAttr(model_.logitScale));
    if (model_.finalSoftcap != 0)
      logits = builder_.create<cmf::SoftcapOp>(loc_, logits, builder_.getF64FloatAttr(model_.finalSoftcap));
    return logits;
  }

  const ModelDescription& model_;
  OpBuilder builder_;
  Location loc_;
  SmallVector<cmf::RopeAttr> ropes_;
  llvm::StringMap<Value> values_;
};

} // namespace

OwningOpRef<ModuleOp> buildModule(MLIRContext& context, const ModelDescription& model) {
  context.loadDialect<cmf::CMFDialect, func::FuncDialect>();
  return DecoderBuilder(context, model).build();
}

} // namespace cortiq::compiler
