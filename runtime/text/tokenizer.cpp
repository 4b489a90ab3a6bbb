#include "runtime/text/tokenizer.h"

#include "runtime/text/abi_bytes.h"

namespace cortiq::runtime::text {

StatusOr<Tokenizer> Tokenizer::from_bytes(std::span<const uint8_t> bytes) {
  cortiq_text_quiet();
  CortiqTextTokenizer* handle = nullptr;
  AbiBytes error;
  int32_t result = cortiq_text_tokenizer_new(abi_view(bytes), &handle, error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error).with_prefix("tokenizer"));
  return Tokenizer(std::shared_ptr<const CortiqTextTokenizer>(handle, [](const CortiqTextTokenizer* tokenizer) {
    cortiq_text_tokenizer_free(const_cast<CortiqTextTokenizer*>(tokenizer));
  }));
}

StatusOr<std::vector<uint32_t>> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  AbiBytes ids, error;
  int32_t result = cortiq_text_encode(handle_.get(), abi_view(text), options.add_special, options.parse_special,
                                      ids.out(), error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error).with_prefix("tokenizer"));
  return ids.ids();
}

StatusOr<std::string> Tokenizer::decode(std::span<const uint32_t> ids, bool skip_special) const {
  AbiBytes text, error;
  int32_t result = cortiq_text_decode(handle_.get(), ids.data(), ids.size(), skip_special, text.out(), error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error).with_prefix("tokenizer"));
  return text.text();
}

std::optional<std::string> Tokenizer::token_text(uint32_t id) const {
  AbiBytes text;
  if (!cortiq_text_token_text(handle_.get(), id, text.out()))
    return std::nullopt;
  return text.text();
}

std::optional<uint32_t> Tokenizer::token_id(std::string_view text) const {
  int64_t id = cortiq_text_token_id(handle_.get(), abi_view(text));
  return id < 0 ? std::nullopt : std::optional<uint32_t>(static_cast<uint32_t>(id));
}

std::vector<uint32_t> Tokenizer::special_ids() const {
  AbiBytes ids;
  cortiq_text_special_ids(handle_.get(), ids.out());
  return ids.ids();
}

uint32_t Tokenizer::vocab_size() const {
  return cortiq_text_vocab_size(handle_.get());
}

StatusOr<std::vector<uint8_t>> compact_tokenizer(std::span<const uint8_t> tokenizer_json) {
  AbiBytes compact, error;
  int32_t result = cortiq_text_compact(abi_view(tokenizer_json), compact.out(), error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error).with_prefix("tokenizer"));
  return compact.bytes();
}

StreamDecoder::StreamDecoder(Tokenizer tokenizer, bool skip_special)
    : tokenizer_(std::move(tokenizer)), stream_(cortiq_text_stream_new(skip_special)) {}

void StreamDecoder::Free::operator()(CortiqTextStream* stream) const {
  cortiq_text_stream_free(stream);
}

StatusOr<std::string> StreamDecoder::push(uint32_t id) {
  AbiBytes text, error;
  int32_t result = cortiq_text_stream_push(stream_.get(), tokenizer_.handle_.get(), id, text.out(), error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error).with_prefix("tokenizer"));
  return text.text();
}

StatusOr<std::string> StreamDecoder::flush() {
  AbiBytes text, error;
  int32_t result = cortiq_text_stream_flush(stream_.get(), tokenizer_.handle_.get(), text.out(), error.out());
  CORTIQ_RETURN_IF_ERROR(abi_status(result, error).with_prefix("tokenizer"));
  return text.text();
}

} // namespace cortiq::runtime::text
