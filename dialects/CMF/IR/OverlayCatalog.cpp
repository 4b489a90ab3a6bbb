#include "dialects/CMF/IR/OverlayCatalog.h"

#include "mlir/IR/Builders.h"

using namespace mlir;

namespace cortiq::cmf {

namespace {

using formats::OverlayCatalog;
using formats::OverlayMask;
using formats::OverlaySkill;
using formats::SkillDescriptor;

// Collects the entries of one dictionary.
class Entries {
public:
  explicit Entries(Builder& builder) : builder_(builder) {}

  void text(StringRef key, const std::string& value) {
    if (!value.empty())
      add(key, builder_.getStringAttr(value));
  }
  void number(StringRef key, int64_t value) { add(key, builder_.getI64IntegerAttr(value)); }
  void real(StringRef key, double value) { add(key, builder_.getF64FloatAttr(value)); }
  void flag(StringRef key, bool value) {
    if (value)
      add(key, builder_.getUnitAttr());
  }
  void bits(StringRef key, const std::vector<uint8_t>& value) {
    add(key, builder_.getDenseI8ArrayAttr({reinterpret_cast<const int8_t*>(value.data()), value.size()}));
  }
  void reals(StringRef key, const std::vector<float>& value) { add(key, builder_.getDenseF32ArrayAttr(value)); }
  void add(StringRef key, Attribute value) { entries_.push_back(builder_.getNamedAttr(key, value)); }
  DictionaryAttr take() { return builder_.getDictionaryAttr(entries_); }

private:
  Builder& builder_;
  SmallVector<NamedAttribute> entries_;
};

// Reads them back.
class Reader {
public:
  explicit Reader(Attribute attr) : dictionary_(dyn_cast_if_present<DictionaryAttr>(attr)) {}

  bool has(StringRef key) const { return dictionary_ && dictionary_.contains(key); }
  Attribute get(StringRef key) const { return dictionary_ ? dictionary_.get(key) : Attribute(); }
  std::string text(StringRef key) const {
    auto attr = dyn_cast_if_present<StringAttr>(get(key));
    return attr ? attr.str() : std::string();
  }
  int64_t number(StringRef key) const {
    auto attr = dyn_cast_if_present<IntegerAttr>(get(key));
    return attr ? attr.getInt() : 0;
  }
  double real(StringRef key, double otherwise) const {
    auto attr = dyn_cast_if_present<FloatAttr>(get(key));
    return attr ? attr.getValueAsDouble() : otherwise;
  }
  std::vector<uint8_t> bits(StringRef key) const {
    auto attr = dyn_cast_if_present<DenseI8ArrayAttr>(get(key));
    return attr ? std::vector<uint8_t>(attr.asArrayRef().begin(), attr.asArrayRef().end()) : std::vector<uint8_t>();
  }
  std::vector<float> reals(StringRef key) const {
    auto attr = dyn_cast_if_present<DenseF32ArrayAttr>(get(key));
    return attr ? attr.asArrayRef().vec() : std::vector<float>();
  }
  ArrayRef<Attribute> list(StringRef key) const {
    auto attr = dyn_cast_if_present<ArrayAttr>(get(key));
    return attr ? attr.getValue() : ArrayRef<Attribute>();
  }

private:
  DictionaryAttr dictionary_;
};

DictionaryAttr descriptorAttr(Builder& builder, const SkillDescriptor& descriptor) {
  Entries entries(builder);
  entries.flag("unit", descriptor.unit);
  entries.number("layer", descriptor.layer);
  entries.number("rank", descriptor.rank);
  entries.reals("mean", descriptor.mean);
  entries.reals("basis", descriptor.basis);
  entries.real("err_mean", descriptor.err_mean);
  entries.real("err_std", descriptor.err_std);
  return entries.take();
}

DictionaryAttr skillAttr(Builder& builder, const OverlaySkill& skill) {
  Entries entries(builder);
  entries.text("id", skill.id);
  entries.text("name", skill.name);
  entries.text("task", skill.task);
  if (skill.descriptor)
    entries.add("descriptor", descriptorAttr(builder, *skill.descriptor));
  return entries.take();
}

DictionaryAttr maskAttr(Builder& builder, const OverlayMask& mask) {
  Entries entries(builder);
  entries.text("name", mask.name);
  entries.flag("fallback", mask.fallback);
  entries.number("layers", mask.layers);
  entries.number("ffn_rows", mask.ffn_rows);
  entries.number("ffn_width", mask.ffn_width);
  entries.number("heads", mask.heads);
  entries.number("expert_count", mask.expert_count);
  entries.bits("ffn", mask.ffn);
  entries.bits("head", mask.head);
  entries.bits("gates", mask.gates);
  entries.bits("experts", mask.experts);
  return entries.take();
}

OverlaySkill readSkill(const Reader& attr) {
  OverlaySkill skill{attr.text("id"), attr.text("name"), attr.text("task"), {}};
  if (attr.has("descriptor")) {
    const Reader d(attr.get("descriptor"));
    skill.descriptor = SkillDescriptor{d.has("unit"),
                                       static_cast<uint32_t>(d.number("layer")),
                                       static_cast<uint32_t>(d.number("rank")),
                                       d.reals("mean"),
                                       d.reals("basis"),
                                       static_cast<float>(d.real("err_mean", 0)),
                                       static_cast<float>(d.real("err_std", 1))};
  }
  return skill;
}

OverlayMask readMask(const Reader& attr) {
  OverlayMask mask;
  mask.name = attr.text("name");
  mask.fallback = attr.has("fallback");
  mask.layers = static_cast<uint32_t>(attr.number("layers"));
  mask.ffn_rows = static_cast<uint32_t>(attr.number("ffn_rows"));
  mask.ffn_width = static_cast<uint32_t>(attr.number("ffn_width"));
  mask.heads = static_cast<uint32_t>(attr.number("heads"));
  mask.expert_count = static_cast<uint32_t>(attr.number("expert_count"));
  mask.ffn = attr.bits("ffn");
  mask.head = attr.bits("head");
  mask.gates = attr.bits("gates");
  mask.experts = attr.bits("experts");
  return mask;
}

} // namespace

void setOverlayCatalog(ModuleOp module, const OverlayCatalog& catalog) {
  if (catalog.empty()) {
    module->removeAttr(kOverlayCatalogAttr);
    return;
  }
  Builder builder(module.getContext());
  Entries entries(builder);
  SmallVector<Attribute> skills, masks;
  for (const OverlaySkill& skill : catalog.skills)
    skills.push_back(skillAttr(builder, skill));
  for (const OverlayMask& mask : catalog.masks)
    masks.push_back(maskAttr(builder, mask));
  entries.add("skills", builder.getArrayAttr(skills));
  entries.add("masks", builder.getArrayAttr(masks));
  if (catalog.calibration) {
    entries.real("temperature", catalog.calibration->temperature);
    entries.real("novelty_theta", catalog.calibration->theta);
  }
  entries.text("fixed_task", catalog.fixed_task);
  module->setAttr(kOverlayCatalogAttr, entries.take());
}

OverlayCatalog overlayCatalog(ModuleOp module) {
  OverlayCatalog catalog;
  const Reader attr(module->getAttr(kOverlayCatalogAttr));
  for (Attribute skill : attr.list("skills"))
    catalog.skills.push_back(readSkill(Reader(skill)));
  for (Attribute mask : attr.list("masks"))
    catalog.masks.push_back(readMask(Reader(mask)));
  if (attr.has("novelty_theta"))
    catalog.calibration = formats::RoutingCalibration{attr.real("temperature", 1), attr.real("novelty_theta", 1)};
  catalog.fixed_task = attr.text("fixed_task");
  return catalog;
}

} // namespace cortiq::cmf
