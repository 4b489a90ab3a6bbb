#include "compiler/gpu/GpuBuilder.h"

#include <algorithm>
#include <bit>

#include "formats/layout/layout.h"

namespace cortiq::compiler {

using namespace formats;

uint32_t bitsOf(float value) {
  return std::bit_cast<uint32_t>(value);
}

namespace {

const Codec* codecOf(const artifact::WeightT& weight) {
  for (const Codec& codec : codec_table())
    if (static_cast<uint16_t>(codec.id) == weight.codec)
      return &codec;
  return nullptr;
}

} // namespace

std::string codecTemplate(std::string_view op, const artifact::WeightT& weight) {
  const Codec* codec = codecOf(weight);
  if (!codec)
    return {};
  std::string name = std::string(op) + "_" + std::string(codec->name);
  return codegen::has_shader_template(name) ? name : std::string();
}

std::string refuseMatrix(std::string_view op, uint32_t index, const GpuBuilder& builder) {
  const artifact::WeightT& weight = builder.weight(index);
  const Codec* codec = codecOf(weight);
  if (codecTemplate(op, weight).empty())
    return "there is no shader for " + std::string(op) + " on " + std::string(codec ? codec->name : "its codec");
  const auto bytes = packed_bytes(*codec, LayoutId::kPlanes, weight.rows, weight.cols);
  if (!bytes.ok())
    return bytes.status().message();
  return weight.rows <= UINT32_MAX && weight.cols <= UINT32_MAX ? std::string() : "its matrix is too large";
}

std::string refuseVector(uint32_t index, const GpuBuilder& builder) {
  if (index == kAbsent)
    return {};
  const artifact::WeightT& weight = builder.weight(index);
  const bool plain = weight.layout == static_cast<uint8_t>(LayoutId::kVerbatim) &&
                     weight.codec == static_cast<uint16_t>(CodecId::kF32);
  return plain ? std::string() : "vector " + weight.name + " is no row of floats";
}

std::string refuseVectors(const std::vector<uint32_t>& weights, const GpuBuilder& builder) {
  for (const uint32_t weight : weights)
    if (std::string reason = refuseVector(weight, builder); !reason.empty())
      return reason;
  return {};
}

GpuPlace GpuBuilder::place(uint32_t slot, uint64_t column) const {
  const artifact::GpuBufferT& buffer = *out_.buffers[slot];
  return {static_cast<uint32_t>(buffer.start + column), static_cast<uint32_t>(buffer.stride), buffer.lanes};
}

void putRow(std::vector<uint32_t>& push, RowWords words, const GpuPlace& place) {
  push[words.start] = place.start;
  push[words.stride] = place.stride;
}

void GpuBuilder::putSlot(std::vector<uint32_t>& push, RowWords words, uint32_t slot, uint64_t column) const {
  if (slot != kAbsent)
    putRow(push, words, place(slot, column));
}

StatusOr<uint32_t> GpuBuilder::module(std::string_view name, std::vector<codegen::SpecValue> constants) {
  if (single_)
    constants.push_back({kSpecOneToken, 1});
  std::ranges::sort(constants, {}, &codegen::SpecValue::id);
  std::string key(name);
  for (const codegen::SpecValue& c : constants)
    key += " " + std::to_string(c.id) + "=" + (c.open ? "?" : std::to_string(c.value));
  auto [at, inserted] = modules_.try_emplace(key, out_.modules.size());
  if (inserted) {
    auto row = std::make_unique<artifact::GpuModuleT>();
    row->name = key;
    CORTIQ_ASSIGN_OR_RETURN(row->code, codegen::specialise_shader(name, constants));
    if (plain_ && codegen::exchanges_in_subgroups(row->code)) {
      CORTIQ_ASSIGN_OR_RETURN(row->plain, plainModule(name, std::move(constants)));
    }
    out_.modules.push_back(std::move(row));
  }
  return at->second;
}

StatusOr<std::vector<uint32_t>> GpuBuilder::plainModule(std::string_view name,
                                                        std::vector<codegen::SpecValue> constants) {
  constants.push_back({kSpecSubgroups, 0});
  const std::string_view used = codegen::plain_shader(name);
  if (!codegen::shader_takes(used, constants))
    return std::vector<uint32_t>();
  CORTIQ_ASSIGN_OR_RETURN(std::vector<uint32_t> code, codegen::specialise_shader(used, constants));
  return codegen::exchanges_in_subgroups(code) ? std::vector<uint32_t>() : code;
}

uint32_t GpuBuilder::vector(uint32_t weight) {
  if (weight == kAbsent)
    return 0;
  auto [at, inserted] = vectors_.try_emplace(weight, static_cast<uint32_t>(out_.vector_floats));
  if (inserted) {
    auto row = std::make_unique<artifact::GpuVectorT>();
    row->weight = weight;
    row->start = out_.vector_floats;
    out_.vector_floats += ceilDiv(manifest_.weights[weight]->rows * manifest_.weights[weight]->cols, 4) * 4;
    out_.vectors.push_back(std::move(row));
  }
  return at->second;
}

uint64_t GpuBuilder::reserveVector(uint64_t floats) {
  const uint64_t start = out_.vector_floats;
  out_.vector_floats += ceilDiv(floats, 4) * 4;
  return start;
}

StatusOr<uint32_t> GpuBuilder::matrix(uint32_t weight, LayoutId layout) {
  if (manifest_.weights[weight]->layout == static_cast<uint8_t>(layout))
    return weight;
  auto [at, inserted] = weights_.matrices.try_emplace(GpuWeights::Key(weight, static_cast<uint32_t>(layout)),
                                                      static_cast<uint32_t>(manifest_.weights.size()));
  if (inserted) {
    const artifact::WeightT& source = *manifest_.weights[weight];
    auto row = std::make_unique<artifact::WeightT>();
    row->name = source.name + (layout == LayoutId::kPlanes ? " (planes)" : " (as in the model)");
    row->codec = source.codec;
    row->layout = static_cast<uint8_t>(layout);
    row->rows = source.rows;
    row->cols = source.cols;
    for (const auto& part : source.blend)
      row->blend.push_back(std::make_unique<artifact::BlendPartT>(*part));
    if (row->blend.empty()) {
      CORTIQ_ASSIGN_OR_RETURN(row->bytes, packed_bytes(*codecOf(source), layout, source.rows, source.cols));
    }
    manifest_.weights.push_back(std::move(row));
    weights_.copies.push_back(weight);
  }
  return at->second;
}

StatusOr<std::vector<RowRange>> GpuBuilder::slices(uint32_t weight, uint64_t step, uint64_t together) {
  constexpr uint64_t kReadBehind = 512, kMostGrowth = 3; // of sizes that only the content tells
  constexpr uint64_t kMostParts = 64;                    // each has shaders of its own
  const artifact::WeightT& source = *manifest_.weights[weight];
  const Codec& codec = *codecOf(source);
  const auto bytes = [&](uint64_t rows) -> uint64_t {
    const auto least = packed_bytes(codec, LayoutId::kPlanes, rows, source.cols);
    return least.ok() ? *least * (codec.variable_size ? kMostGrowth : 1) + kReadBehind : UINT64_MAX;
  };
  const uint64_t range = std::max<uint64_t>(1, weights_.range / together);
  std::vector<RowRange> out;
  if (!source.blend.empty() || bytes(source.rows) <= range)
    return out;
  uint64_t rows = ceilDiv(ceilDiv(source.rows, ceilDiv(bytes(source.rows), range)), step) * step;
  while (rows > 0 && bytes(rows) > range)
    rows -= step;
  if (rows == 0 || ceilDiv(source.rows, rows) > kMostParts)
    return out;
  CORTIQ_ASSIGN_OR_RETURN(const uint32_t whole, matrix(weight));
  for (uint64_t first = 0; first < source.rows; first += rows) {
    auto row = std::make_unique<artifact::GpuSliceT>();
    row->weight = whole;
    row->first = first;
    row->rows = std::min(rows, source.rows - first);
    const auto alike = [&](const auto& known) {
      return known->weight == whole && known->first == row->first && known->rows == row->rows;
    };
    const auto at = std::ranges::find_if(out_.slices, alike);
    out.push_back({first, row->rows, static_cast<uint32_t>(at - out_.slices.begin())});
    if (at == out_.slices.end())
      out_.slices.push_back(std::move(row));
  }
  return out;
}

StatusOr<GpuBuilder::Stack> GpuBuilder::stack(const std::vector<uint32_t>& weights) {
  if (const auto found = stacks_.find(weights[0]); found != stacks_.end())
    return found->second;
  auto row = std::make_unique<artifact::GpuStackT>();
  for (const uint32_t weight : weights) {
    CORTIQ_ASSIGN_OR_RETURN(const uint32_t made, matrix(weight));
    row->weights.push_back(made);
  }
  const artifact::WeightT& first = *manifest_.weights[row->weights[0]];
  row->units = static_cast<uint32_t>(ceilDiv(first.bytes, 16));
  const Stack made{row->weights[0], row->units};
  out_.stacks.push_back(std::move(row));
  stacks_[weights[0]] = made;
  return made;
}

uint32_t GpuBuilder::vectors(const std::vector<uint32_t>& weights) {
  const uint32_t start = vector(weights[0]);
  for (const uint32_t weight : weights)
    vector(weight);
  return start;
}

uint32_t GpuBuilder::words(const std::vector<uint32_t>& table) {
  auto [at, inserted] = words_.try_emplace(table, static_cast<uint32_t>(out_.vector_floats));
  if (inserted) {
    auto row = std::make_unique<artifact::GpuVectorT>();
    row->words = table;
    row->start = out_.vector_floats;
    out_.vector_floats += ceilDiv(table.size(), 4) * 4;
    out_.vectors.push_back(std::move(row));
  }
  return at->second;
}

uint32_t GpuBuilder::ring(uint32_t layer) const {
  const artifact::KvLayerT& cache = *program_.kv_layers[layer];
  // The window and room for a batch, as the executor of the CPU keeps it.
  return cache.ring ? static_cast<uint32_t>(ceilDiv(cache.window + out_.max_batch - 1, 64) * 64) : 0;
}

std::pair<uint32_t, uint32_t> GpuBuilder::rotation(uint32_t table) const {
  uint64_t at = kStepIds + out_.max_batch;
  for (uint32_t t = 0; t < table; ++t)
    at += 2 * uint64_t{out_.max_batch} * program_.rope_tables[t]->inverse_frequencies.size();
  const uint64_t pairs = program_.rope_tables[table]->inverse_frequencies.size();
  return {static_cast<uint32_t>(at), static_cast<uint32_t>(at + out_.max_batch * pairs)};
}

StatusOr<GpuPlace> GpuBuilder::inLanes(uint32_t slot, uint64_t column, uint64_t elements) {
  GpuPlace from = place(slot, column);
  if (from.lanes)
    return from;
  const uint32_t stride = static_cast<uint32_t>(laneRow(elements));
  auto [at, inserted] = copied_.try_emplace({slot, column}, static_cast<uint32_t>(scratchStart_ + scratch_));
  if (inserted) {
    scratch_ += uint64_t{stride} * (single_ ? 1 : out_.max_batch);
    mostScratch_ = std::max(mostScratch_, scratch_);
    CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT made, copy(from, {at->second, stride, true}, elements));
    add(prepared_, std::move(made));
  }
  return GpuPlace{at->second, stride, true};
}

GpuPlace GpuBuilder::scratch(uint64_t elements) {
  const uint64_t stride = ceilDiv(elements, 4) * 4;
  const GpuPlace out{static_cast<uint32_t>(scratchStart_ + scratch_), static_cast<uint32_t>(stride), false};
  scratch_ += stride * (single_ ? 1 : out_.max_batch);
  mostScratch_ = std::max(mostScratch_, scratch_);
  return out;
}

Status GpuBuilder::quantizeBehind(const GpuPlace& from, uint32_t slot, uint64_t elements) {
  constexpr uint32_t kLocal = 256;
  artifact::GpuDispatchT made;
  CORTIQ_ASSIGN_OR_RETURN(made.module_, module("quantize", {{kSpecLocal, kLocal},
                                                            {kSpecRows, uint32_t(elements)},
                                                            {kSpecInOrder, from.lanes ? 1u : 0u}}));
  made.groups = ceilDiv(ceilDiv(elements, 32), kLocal / 8);
  made.push.resize(kPushWords);
  putRow(made.push, kRowInput, from);
  putSlot(made.push, kRowOut, slot);
  if (half()) {
    made.on_half = artifact::GpuHalf::Never;
    CORTIQ_RETURN_IF_ERROR(halfBehind(from, place(slot), elements));
  }
  add(behind_, std::move(made));
  return {};
}

Status GpuBuilder::halfBehind(const GpuPlace& from, const GpuPlace& out, uint64_t elements, uint32_t each) {
  constexpr uint32_t kLocal = 256;
  artifact::GpuDispatchT made;
  CORTIQ_ASSIGN_OR_RETURN(made.module_, module("half_rows", {{kSpecLocal, kLocal},
                                                             {kSpecRows, uint32_t(elements)},
                                                             {kSpecInOrder, from.lanes ? 1u : 0u},
                                                             {kSpecExperts, each}}));
  made.groups = 1;
  made.each = each;
  made.on_half = artifact::GpuHalf::Only;
  made.push.resize(kPushWords);
  putRow(made.push, kRowInput, from);
  putRow(made.push, kRowOut, out);
  add(behind_, std::move(made));
  return {};
}

Status GpuBuilder::makeResult(uint32_t slot, uint64_t elements, uint32_t each, MakeResult make) {
  const auto rows = [&](GpuPlace all) {
    all.stride /= each;
    return all;
  };
  const GpuPlace out = rows(place(slot));
  if (!half() || !eightBits(slot))
    return make(out, eightBits(slot));
  const GpuPlace from = rows(scratch(elements * each));
  onHalf_ = artifact::GpuHalf::Only;
  CORTIQ_RETURN_IF_ERROR(make(from, /*eightBits=*/false));
  onHalf_ = artifact::GpuHalf::Never;
  CORTIQ_RETURN_IF_ERROR(make(out, /*eightBits=*/true));
  onHalf_ = artifact::GpuHalf::Both;
  return halfBehind(from, out, elements, each);
}

Status GpuBuilder::makeRow(uint32_t slot, MakeRow make) {
  if (!eightBits(slot))
    return make(place(slot), RowForm::kFloats);
  if (half()) {
    onHalf_ = artifact::GpuHalf::Only;
    CORTIQ_RETURN_IF_ERROR(make(place(slot), RowForm::kHalf));
    onHalf_ = artifact::GpuHalf::Never;
  }
  CORTIQ_RETURN_IF_ERROR(make(place(slot), RowForm::kEightBits));
  onHalf_ = artifact::GpuHalf::Both;
  return {};
}

GpuPlace GpuBuilder::resultPlace(uint32_t out, uint32_t actOut, uint64_t elements) {
  const uint32_t first = out != kAbsent ? out : actOut;
  return eightBits(first) ? scratch(elements) : place(first);
}

uint32_t GpuBuilder::onlyEightBits(uint32_t out, uint32_t actOut) const {
  const uint32_t slot = std::min(out, actOut);
  return std::max(out, actOut) == kAbsent && eightBits(slot) ? slot : kAbsent;
}

Status GpuBuilder::finishResults(const GpuPlace& from, uint32_t out, uint32_t actOut, uint64_t elements) {
  const uint32_t first = out != kAbsent ? out : actOut;
  if (eightBits(first))
    CORTIQ_RETURN_IF_ERROR(quantizeBehind(from, first, elements));
  if (out == kAbsent || actOut == kAbsent)
    return {};
  return eightBits(actOut) ? quantizeBehind(from, actOut, elements) : copyBehind(from, place(actOut), elements);
}

StatusOr<uint32_t> GpuBuilder::squares(uint64_t parts) {
  if (parts > kSquaresFloats)
    return internal_error("a norm's sum of squares has " + std::to_string(parts) + " parts");
  return static_cast<uint32_t>(squaresStart_ + squaresUsed_++ % 2 * kSquaresFloats);
}

void GpuBuilder::add(Dispatches& list, artifact::GpuDispatchT dispatch) {
  dispatch.push.resize(kPushWords);
  dispatch.push[kPushHead] = head_ ? 1 : 0;
  if (onHalf_ != artifact::GpuHalf::Both)
    dispatch.on_half = onHalf_;
  if (when_)
    dispatch.when = std::make_unique<artifact::GpuWhenT>(*when_);
  list.push_back(std::make_unique<artifact::GpuDispatchT>(std::move(dispatch)));
}

StatusOr<artifact::GpuDispatchT> GpuBuilder::copy(const GpuPlace& from, const GpuPlace& out, uint64_t elements) {
  constexpr uint32_t kLocal = 64;
  artifact::GpuDispatchT made;
  CORTIQ_ASSIGN_OR_RETURN(made.module_, module("reorder", {{kSpecLocal, kLocal},
                                                           {kSpecRows, uint32_t(elements)},
                                                           {kSpecInOrder, from.lanes ? 1u : 0u},
                                                           {kSpecOutOrder, out.lanes ? 1u : 0u}}));
  made.groups = ceilDiv(out.lanes ? laneRow(elements) : elements, kLocal);
  made.push.resize(kPushWords);
  putRow(made.push, kRowInput, from);
  putRow(made.push, kRowOut, out);
  return made;
}

Status GpuBuilder::copyBehind(const GpuPlace& from, const GpuPlace& out, uint64_t elements) {
  CORTIQ_ASSIGN_OR_RETURN(artifact::GpuDispatchT made, copy(from, out, elements));
  add(behind_, std::move(made));
  return {};
}

void GpuBuilder::setWhen(std::optional<artifact::GpuWhenT> when) {
  when_ = std::move(when);
  copied_.clear(); // a copy under one condition is none under another
}

uint32_t GpuBuilder::maskRow(const artifact::MaskBitsT& bits, uint64_t columns) {
  for (uint32_t i = 0; i < out_.mask_rows.size(); ++i)
    if (const artifact::MaskBitsT& known = *out_.mask_rows[i]->bits;
        known.kind == bits.kind && known.layer == bits.layer && known.first == bits.first &&
        known.group == bits.group && out_.mask_rows[i]->columns == columns)
      return i;
  auto row = std::make_unique<artifact::GpuMaskRowT>();
  row->bits = std::make_unique<artifact::MaskBitsT>(bits);
  row->columns = static_cast<uint32_t>(columns);
  row->start = out_.mask_words;
  out_.mask_words += static_cast<uint32_t>(ceilDiv(columns, 32));
  out_.mask_rows.push_back(std::move(row));
  return static_cast<uint32_t>(out_.mask_rows.size() - 1);
}

Status GpuBuilder::cutBehind(uint32_t slot, const artifact::MaskBitsT& bits, uint32_t gate) {
  constexpr uint32_t kLocal = 128;
  const GpuPlace out = place(slot);
  artifact::GpuDispatchT made;
  CORTIQ_ASSIGN_OR_RETURN(made.module_, module("cut", {{kSpecLocal, kLocal},
                                                       {kSpecRows, uint32_t(elements(slot))},
                                                       {kSpecOutOrder, out.lanes ? 1u : 0u}}));
  made.groups = ceilDiv(elements(slot), kLocal);
  made.mask_row = maskRow(bits, elements(slot));
  made.push.resize(kPushWords);
  made.push[kPushOut] = out.start;
  made.push[kPushOutStride] = out.stride;
  made.when = std::make_unique<artifact::GpuWhenT>();
  made.when->masked = true;
  made.when->gate = gate;
  add(cuts_, std::move(made));
  return {};
}

void GpuBuilder::beginStep(bool head, std::string name) {
  head_ = head;
  name_ = std::move(name);
  scratch_ = 0;
  copied_.clear();
}

void GpuBuilder::endStep(std::vector<std::unique_ptr<artifact::GpuStepT>>& steps) {
  for (Dispatches* list : {&prepared_, &current_, &behind_, &cuts_}) {
    if (list->empty())
      continue;
    auto step = std::make_unique<artifact::GpuStepT>();
    step->dispatches = std::move(*list);
    step->head = head_;
    step->name = name_;
    steps.push_back(std::move(step));
    list->clear();
  }
}

const GpuOpRow* findGpuOp(artifact::Op op) {
  static const GpuOpRow* const table[] = {
      &kGpuAdd,       &kGpuAttention, &kGpuAttentionPrep, &kGpuCausalConv, &kGpuClusterLogits, &kGpuConcatHeads,
      &kGpuEmbed,     &kGpuGate,      &kGpuGatedDelta,    &kGpuGlu,        &kGpuHadamard,      &kGpuKda,
      &kGpuLayerGate, &kGpuLogits,    &kGpuMatmul,        &kGpuNorm,       &kGpuPlace,         &kGpuQuantize,
      &kGpuResonance, &kGpuShortConv, &kGpuTap,           &kGpuVmfPhase};
  for (const GpuOpRow* row : table)
    if (row->op == op)
      return row;
  return nullptr;
}

} // namespace cortiq::compiler
