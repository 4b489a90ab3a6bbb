#include "runtime/ops/moe.h"

#include "formats/quote.h"

namespace cortiq::runtime {

StatusOr<SlotRef> moe_plan_slot(const Resolver& resolver, uint32_t index, uint64_t experts, uint64_t choices,
                                const char* what) {
  // Bounds that no model reaches; the words of a plan then stay far within 32 bits.
  if (experts == 0 || experts > (1 << 16) || choices == 0 || choices > experts)
    return invalid(std::string(what) + ": " + std::to_string(choices) + " of " + std::to_string(experts) +
                   " experts make no sense");
  return resolver.i32_slot(index, moe_plan_words(experts, choices), what);
}

StatusOr<uint64_t> moe_records(const Resolver& resolver, uint32_t index, const char* what) {
  CORTIQ_RETURN_IF_ERROR(resolver.slot_elements(index, what).status());
  return resolver.program->buffers()->Get(index)->records();
}

StatusOr<SlotRef> moe_record_slot(const Resolver& resolver, uint32_t index, artifact::BufferKind kind,
                                  uint64_t elements, uint64_t records, const char* what) {
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t found, moe_records(resolver, index, what));
  const artifact::Buffer& buffer = *resolver.program->buffers()->Get(index);
  SlotRef slot = resolver.slots[index];
  const bool same_kind = kind == artifact::BufferKind::Q8Act ? resolver.is_q8(index) : buffer.kind() == kind;
  if (found != records || !same_kind || slot.elements < elements || slot.stride % (64 * records) != 0)
    return invalid(std::string(what) + ": slot " + std::to_string(index) + " does not hold " + std::to_string(records) +
                   " records a token of " + std::to_string(elements) + " elements of the kind that is needed");
  slot.stride /= records;
  return slot;
}

StatusOr<std::vector<const uint16_t*>> moe_column_scales(const Resolver& resolver,
                                                         const flatbuffers::Vector<uint32_t>* list,
                                                         const std::vector<uint64_t>& cols, const char* what) {
  std::vector<const uint16_t*> scales;
  if (!list || list->size() == 0)
    return scales;
  if (list->size() != cols.size())
    return invalid(std::string(what) + ": column scales are listed for " + std::to_string(list->size()) + " of " +
                   std::to_string(cols.size()) + " experts");
  for (size_t e = 0; e < cols.size(); ++e) {
    if (list->Get(static_cast<uint32_t>(e)) == kNoIndex) {
      scales.push_back(nullptr);
      continue;
    }
    CORTIQ_ASSIGN_OR_RETURN(const WeightRef weight, resolver.weight(list->Get(static_cast<uint32_t>(e)), what));
    if (!weight.codec->column_scales || weight.layout != formats::LayoutId::kR16 || weight.cols != cols[e])
      return invalid(std::string(what) + ": weight " + formats::quote(weight.entry->name()->string_view()) +
                     " has no column scales for " + std::to_string(cols[e]) + " columns");
    scales.push_back(reinterpret_cast<const uint16_t*>(weight.bytes.data()));
  }
  return scales;
}

} // namespace cortiq::runtime
