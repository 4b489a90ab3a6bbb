#include "runtime/text/constraint.h"

#include <algorithm>
#include <limits>

#include "runtime/text/abi_bytes.h"
#include "runtime/text/tokenizer_access.h"

namespace cortiq::runtime::text {

StatusOr<Vocabulary> Vocabulary::create(const Tokenizer& tokenizer, uint32_t count, std::span<const uint32_t> ends) {
  CortiqTextVocabulary* handle = nullptr;
  AbiBytes error;
  const int32_t result = cortiq_text_vocabulary_new(TokenizerAccess::handle(tokenizer), count, ends.data(), ends.size(),
                                                    &handle, error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error).with_prefix("tokenizer"));
  return Vocabulary(std::shared_ptr<const CortiqTextVocabulary>(handle,
                                                                [](const CortiqTextVocabulary* vocabulary) {
                                                                  cortiq_text_vocabulary_free(
                                                                      const_cast<CortiqTextVocabulary*>(vocabulary));
                                                                }),
                    count);
}

StatusOr<std::unique_ptr<Constraint>> Vocabulary::constrain(Notation notation, std::string_view source) const {
  cortiq_text_quiet();
  CortiqTextConstraint* handle = nullptr;
  AbiBytes error;
  const int32_t result =
      cortiq_text_constraint_new(handle_.get(), static_cast<int32_t>(notation), abi_view(source), &handle, error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error));
  return std::unique_ptr<Constraint>(new Constraint(Constraint::Handle(handle), count_));
}

void Constraint::Free::operator()(CortiqTextConstraint* constraint) const {
  cortiq_text_constraint_free(constraint);
}

StatusOr<std::unique_ptr<Constraint>> Constraint::copy() const {
  CortiqTextConstraint* handle = nullptr;
  AbiBytes error;
  const int32_t result = cortiq_text_constraint_copy(handle_.get(), &handle, error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error));
  return std::unique_ptr<Constraint>(new Constraint(Handle(handle), count_));
}

void Constraint::mask(std::span<float> logits) {
  AbiBytes error;
  const int32_t result = cortiq_text_constraint_mask(handle_.get(), words_.data(), words_.size(), error.out());
  if (failure_.ok())
    failure_ = abi_status(result, error);
  if (!failure_.ok())
    std::fill(words_.begin(), words_.end(), 0u);
  constexpr float kExcluded = -std::numeric_limits<float>::infinity();
  // Most words are all or nothing: only the others are looked at bit by bit.
  const size_t known = std::min<size_t>(logits.size(), count_);
  std::fill(logits.begin() + static_cast<std::ptrdiff_t>(known), logits.end(), kExcluded);
  for (size_t first = 0; first < known; first += 32) {
    const uint32_t word = words_[first / 32];
    const std::span<float> part = logits.subspan(first, std::min<size_t>(32, known - first));
    if (word == 0)
      std::fill(part.begin(), part.end(), kExcluded);
    else if (word != UINT32_MAX)
      for (size_t bit = 0; bit < part.size(); ++bit)
        if ((word >> bit & 1) == 0)
          part[bit] = kExcluded;
  }
}

bool Constraint::accept(uint32_t id) {
  AbiBytes error;
  bool complete = false;
  const int32_t result = cortiq_text_constraint_accept(handle_.get(), id, &complete, error.out());
  if (failure_.ok())
    failure_ = abi_status(result, error);
  return !complete; // after a failure mask() leaves nothing, and the answer fails
}

} // namespace cortiq::runtime::text
