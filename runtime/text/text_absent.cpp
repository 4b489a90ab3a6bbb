// Stands in for the text library in builds without it (CORTIQ_BUILD_TEXT=OFF): every use fails with the reason.

#include <string_view>

#include "runtime/text/text_abi.h"

namespace {

int32_t absent(CortiqTextBytes* error) {
  // Static text: cortiq_text_release() below frees nothing.
  static constexpr std::string_view kSentence =
      "this program was built without the text library (CORTIQ_BUILD_TEXT=OFF); give token ids, or build it with cargo";
  *error = {reinterpret_cast<uint8_t*>(const_cast<char*>(kSentence.data())), kSentence.size()};
  return 0;
}

} // namespace

extern "C" {

void cortiq_text_release(CortiqTextBytes) {}
void cortiq_text_quiet() {}
int32_t cortiq_text_tokenizer_new(CortiqTextView, CortiqTextTokenizer**, CortiqTextBytes* error) {
  return absent(error);
}
void cortiq_text_tokenizer_free(CortiqTextTokenizer*) {}
int32_t cortiq_text_compact(CortiqTextView, CortiqTextBytes*, CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_encode(const CortiqTextTokenizer*, CortiqTextView, bool, bool, CortiqTextBytes*,
                           CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_decode(const CortiqTextTokenizer*, const uint32_t*, size_t, bool, CortiqTextBytes*,
                           CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_token_text(const CortiqTextTokenizer*, uint32_t, CortiqTextBytes*) {
  return 0;
}
int64_t cortiq_text_token_id(const CortiqTextTokenizer*, CortiqTextView) {
  return -1;
}
uint32_t cortiq_text_vocab_size(const CortiqTextTokenizer*) {
  return 0;
}
void cortiq_text_special_ids(const CortiqTextTokenizer*, CortiqTextBytes*) {}
CortiqTextStream* cortiq_text_stream_new(bool) {
  return nullptr;
}
void cortiq_text_stream_free(CortiqTextStream*) {}
int32_t cortiq_text_stream_push(CortiqTextStream*, const CortiqTextTokenizer*, uint32_t, CortiqTextBytes*,
                                CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_stream_flush(CortiqTextStream*, const CortiqTextTokenizer*, CortiqTextBytes*,
                                 CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_render(CortiqTextView, CortiqTextView, CortiqTextView, CortiqTextBytes*, CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_encode_chat(const CortiqTextTokenizer*, CortiqTextView, CortiqTextView, CortiqTextView,
                                CortiqTextBytes*, CortiqTextBytes*, CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_vocabulary_new(const CortiqTextTokenizer*, uint32_t, const uint32_t*, size_t,
                                   CortiqTextVocabulary**, CortiqTextBytes* error) {
  return absent(error);
}
void cortiq_text_vocabulary_free(CortiqTextVocabulary*) {}
int32_t cortiq_text_constraint_new(const CortiqTextVocabulary*, int32_t, CortiqTextView, CortiqTextConstraint**,
                                   CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_constraint_copy(const CortiqTextConstraint*, CortiqTextConstraint**, CortiqTextBytes* error) {
  return absent(error);
}
void cortiq_text_constraint_free(CortiqTextConstraint*) {}
int32_t cortiq_text_constraint_mask(CortiqTextConstraint*, uint32_t*, size_t, CortiqTextBytes* error) {
  return absent(error);
}
int32_t cortiq_text_constraint_accept(CortiqTextConstraint*, uint32_t, bool*, CortiqTextBytes* error) {
  return absent(error);
}

} // extern "C"
