#include "formats/checked_math.h"
#include "runtime/ops/op.h"

namespace cortiq::runtime {

namespace {

// No model reaches it; scratch and products of three sizes stay small.
constexpr uint64_t kMaxSize = 1 << 14;

} // namespace

Status check_sizes(std::initializer_list<uint64_t> sizes, const char* what) {
  for (const uint64_t size : sizes)
    if (size == 0 || size > kMaxSize)
      return invalid(std::string(what) + ": it has a size of " + std::to_string(size) + ", which no model has");
  return {};
}

StatusOr<uint32_t> take_state(const Resolver& resolver, ProgramFacts& facts, uint32_t index,
                              std::initializer_list<uint64_t> extents, const char* what) {
  std::optional<uint64_t> elements = 1;
  for (const uint64_t extent : extents)
    elements = formats::checked_mul(elements, extent);
  const auto* states = resolver.program->states();
  if (!states || index >= states->size())
    return invalid(std::string(what) + ": there is no state " + std::to_string(index));
  if (!elements || states->Get(index) != *elements)
    return invalid(std::string(what) + ": state " + std::to_string(index) + " holds " +
                   std::to_string(states->Get(index)) + " numbers, its sizes ask for another count");
  facts.states.resize(states->size());
  if (facts.states[index] != 0)
    return invalid(std::string(what) + ": state " + std::to_string(index) + " belongs to another operation");
  facts.states[index] = *elements;
  return index;
}

} // namespace cortiq::runtime
