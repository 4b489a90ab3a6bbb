// A GGUF file: open, read every metadata entry in every way, decode some rows, turn its tokenizer into the common form.

#include "formats/gguf/gguf_file.h"
#include "runtime/text/text_source.h"
#include "runtime/text/tokenizer.h"
#include "test/fuzz/memory_file.h"
#include "test/fuzz/walk_tensors.h"

using namespace cortiq;

namespace {

/// Layers of which per-layer values are asked.
constexpr uint64_t kLayers = 5;

void read_entry(const formats::GgufFile& file, std::string_view key) {
  static_cast<void>(file.get_u64(key));
  static_cast<void>(file.get_i64_or(key, -1));
  static_cast<void>(file.get_f64(key));
  static_cast<void>(file.get_bool(key));
  static_cast<void>(file.get_string(key));
  static_cast<void>(file.get_u64_array(key));
  static_cast<void>(file.get_i64_array(key));
  static_cast<void>(file.get_f64_array(key));
  static_cast<void>(file.get_bool_array(key));
  static_cast<void>(file.get_string_array(key));
  static_cast<void>(file.get_per_layer_u64(key, kLayers));
  static_cast<void>(file.get_per_layer_f64(key, kLayers));
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile input({data, size});
  const StatusOr<formats::GgufFile> file = formats::GgufFile::open(input.path());
  if (!file.ok()) {
    fuzz::require(file.status().code() != StatusCode::kInternal, "a refusal that blames the program");
    fuzz::require(file.status().message().find('\n') == std::string::npos, "a refusal of several lines");
    return 0;
  }
  for (const formats::GgufEntry& entry : file->entries())
    read_entry(*file, entry.key);
  for (const formats::Tensor& tensor : file->tensors())
    fuzz::require(file->find(tensor.name) == &tensor, "every tensor is found under its name");
  fuzz::walk_tensors(file->tensors());
  static_cast<void>(file->check_model());
  const StatusOr<runtime::text::TextSource> text = runtime::text::read_text_source(*file);
  if (!text.ok())
    return 0;
  const StatusOr<runtime::text::Tokenizer> tokenizer = runtime::text::Tokenizer::from_bytes(text->tokenizer_json);
  if (tokenizer.ok())
    static_cast<void>(tokenizer->encode("The quick brown fox\n\n 1234 \xF0\x9F\x98\x80 <|im_end|>"));
  return 0;
}
