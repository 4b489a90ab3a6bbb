#include "runtime/loader/resolver.h"

#include "formats/checked_math.h"
#include "formats/quote.h"

namespace cortiq::runtime {
namespace {

Status bad(const char* what, const std::string& why) {
  return invalid(std::string(what) + ": " + why);
}

} // namespace

StatusOr<SlotRef> Resolver::f32_slot(uint32_t index, uint64_t elements, const char* what) const {
  CORTIQ_ASSIGN_OR_RETURN(SlotRef slot, f32_columns(index, 0, elements, what));
  if (slot.elements != elements)
    return bad(what, "slot " + std::to_string(index) + " has " + std::to_string(slot.elements) + " elements, not " +
                         std::to_string(elements));
  return slot;
}

StatusOr<SlotRef> Resolver::q8_slot(uint32_t index, uint64_t elements, const char* what) const {
  if (index >= slots.size() || !is_q8(index) || slots[index].elements != elements)
    return bad(what,
               "slot " + std::to_string(index) + " is not a q8a slot of " + std::to_string(elements) + " elements");
  return slots[index];
}

StatusOr<SlotRef> Resolver::i32_slot(uint32_t index, uint64_t elements, const char* what) const {
  if (index >= slots.size() || kind(index) != artifact::BufferKind::I32 || slots[index].elements != elements)
    return bad(what,
               "slot " + std::to_string(index) + " is not an i32 slot of " + std::to_string(elements) + " elements");
  return slots[index];
}

StatusOr<SlotRef> Resolver::f32_columns(uint32_t index, uint64_t column, uint64_t elements, const char* what) const {
  if (index >= slots.size() || kind(index) != artifact::BufferKind::F32)
    return bad(what, "slot " + std::to_string(index) + " is not an f32 slot");
  SlotRef slot = slots[index];
  if (elements == 0 || !formats::range_fits(column, elements, slot.elements))
    return bad(what, std::to_string(elements) + " columns from " + std::to_string(column) + " do not fit slot " +
                         std::to_string(index) + " of " + std::to_string(slot.elements));
  slot.offset += column * sizeof(float);
  if (uses)
    ++(*uses)[index];
  return slot;
}

StatusOr<uint64_t> Resolver::slot_elements(uint32_t index, const char* what) const {
  if (index >= slots.size())
    return bad(what, "there is no slot " + std::to_string(index));
  return slots[index].elements;
}

artifact::BufferKind Resolver::kind(uint32_t index) const {
  return program->buffers()->Get(index)->kind();
}

bool Resolver::is_q8(uint32_t index) const {
  return kind(index) == artifact::BufferKind::Q8Act || slots[index].bf16;
}

uint64_t Resolver::q8_record_bytes(uint32_t index, uint64_t k) const {
  return slots[index].bf16 ? formats::bf16_act_layout(k).bytes : formats::q8_act_layout(k).bytes;
}

StatusOr<WeightRef> Resolver::weight(uint32_t index, const char* what) const {
  if (index >= weights.size())
    return bad(what, "there is no weight " + std::to_string(index));
  WeightRef out = weights[index];
  if (out.mixed) {
    if (!mix)
      return bad(what, "weight " + std::to_string(index) + " is there under a blend only");
    CORTIQ_ASSIGN_OR_RETURN(out.bytes, mix(index));
  }
  return out;
}

StatusOr<const float*> Resolver::vector(uint32_t index, uint64_t elements, const char* what) const {
  CORTIQ_ASSIGN_OR_RETURN(const WeightRef w, weight(index, what));
  const auto count = formats::checked_mul(w.rows, w.cols);
  if (w.codec->id != formats::CodecId::kF32 || w.layout != formats::LayoutId::kVerbatim || count != elements)
    return bad(what, "weight " + formats::quote(w.entry->name()->string_view()) + " is not a plain f32 vector of " +
                         std::to_string(elements));
  return reinterpret_cast<const float*>(w.bytes.data());
}

StatusOr<KernelRef> Resolver::kernel(uint32_t index, const char* what) const {
  if (index >= kernels.size())
    return bad(what, "there is no kernel " + std::to_string(index));
  return kernels[index];
}

} // namespace cortiq::runtime
