// A CMF file: open, walk all of it, recompute its hashes, decode some rows, read its text side.

#include "formats/cmf/cmf_experts.h"
#include "formats/cmf/cmf_file.h"
#include "runtime/text/text_source.h"
#include "test/fuzz/memory_file.h"
#include "test/fuzz/walk_tensors.h"

using namespace cortiq;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const fuzz::MemoryFile input({data, size});
  const StatusOr<formats::CmfFile> file = formats::CmfFile::open(input.path());
  if (!file.ok()) {
    fuzz::require(file.status().code() != StatusCode::kInternal, "a refusal that blames the program");
    fuzz::require(file.status().message().find('\n') == std::string::npos, "a refusal of several lines");
    return 0;
  }
  for (const formats::Tensor& tensor : file->tensors())
    fuzz::require(file->find(tensor.name) == &tensor, "every tensor is found under its name");
  fuzz::walk_tensors(file->tensors());
  if (file->masks())
    for (const formats::CmfMask& mask : file->masks()->masks)
      for (const std::span<const uint8_t> rows : {mask.ffn, mask.heads, mask.gates, mask.experts})
        fuzz::consume(rows);
  static_cast<void>(file->verify());
  static_cast<void>(file->check_runnable());
  static_cast<void>(formats::check_cmf_experts(*file));
  static_cast<void>(runtime::text::read_text_source(*file));
  return 0;
}
