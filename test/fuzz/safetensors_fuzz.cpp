// A checkpoint folder that is converted. Five parts with a zero byte between them: config.json, tokenizer_config.json,
// the index (none where empty), the header of one safetensors file, its data. The header's length is made right, so
// that changes reach what lies behind it; the input is also taken as a whole safetensors file.

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

#include "formats/safetensors/safetensors_file.h"
#include "test/fuzz/memory_file.h"
#include "test/fuzz/walk_tensors.h"
#include "tools/cortiq-convert/convert.h"

using namespace cortiq;

namespace {

constexpr std::string_view kTokenizer =
    R"({"version":"1.0","added_tokens":[],"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]}})";

std::span<const uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

void check_refusal(const Status& status) {
  if (status.ok())
    return;
  fuzz::require(status.code() != StatusCode::kInternal, "a refusal that blames the program");
  fuzz::require(status.message().find('\n') == std::string::npos, "a refusal of several lines");
}

/// A folder whose entries are links to inputs in memory; it lives as long as the process.
class Folder {
public:
  Folder() : path_((std::filesystem::temp_directory_path() / "cortiq-fuzz-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) {
      std::perror("a folder for the input");
      _exit(0);
    }
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  void link(const char* name, const fuzz::MemoryFile& file) const {
    std::filesystem::create_symlink(file.path(), path_ + "/" + name);
  }
  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      std::filesystem::remove(entry);
  }

private:
  std::string path_;
};

void parse_alone(std::span<const uint8_t> bytes) {
  const fuzz::MemoryFile input(bytes);
  const StatusOr<formats::MappedFile> file = formats::MappedFile::open(input.path());
  if (!file.ok())
    return;
  const StatusOr<std::vector<formats::Tensor>> tensors = formats::parse_safetensors(file->bytes(), input.path());
  check_refusal(tensors.status());
  if (tensors.ok())
    fuzz::walk_tensors(*tensors);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  parse_alone({data, size});
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::array<std::string_view, 4> parts; // config, tokenizer_config, index, header
  for (std::string_view& part : parts) {
    const size_t end = std::min(rest.find('\0'), rest.size());
    part = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  std::vector<uint8_t> weights(sizeof(uint64_t) + parts[3].size() + rest.size());
  const uint64_t length = parts[3].size();
  std::memcpy(weights.data(), &length, sizeof length);
  std::copy(parts[3].begin(), parts[3].end(), weights.begin() + sizeof length);
  std::copy(rest.begin(), rest.end(), weights.begin() + static_cast<ptrdiff_t>(sizeof length + length));
  parse_alone(weights);

  static const Folder folder;
  const fuzz::MemoryFile config(bytes_of(parts[0])), names(bytes_of(parts[1])), index(bytes_of(parts[2])),
      file(weights), tokenizer(bytes_of(kTokenizer));
  folder.link("config.json", config);
  if (!parts[1].empty())
    folder.link("tokenizer_config.json", names);
  if (!parts[2].empty())
    folder.link("model.safetensors.index.json", index);
  folder.link("model.safetensors", file);
  folder.link("tokenizer.json", tokenizer);
  convert::ConvertOptions options;
  options.input = folder.path();
  options.output = folder.path() + "/out.cmf";
  options.progress = [](const char*, double) {};
  check_refusal(convert::convert(options).status());
  folder.clear();
  return 0;
}
