#include "runtime/vulkan/kept_pipelines.h"

#include <cstring>
#include <filesystem>

#include "formats/atomic_file.h"
#include "formats/mapped_file.h"

namespace cortiq::runtime::vulkan {
namespace {

/// In front of a driver's bytes: drivers look at their own header only, and trust the rest.
struct Head {
  char magic[8] = {'c', 'o', 'r', 't', 'i', 'q', 'v', '1'};
  uint64_t bytes = 0, hash = 0;
};

/// FNV-1a: it finds damage, not intent.
uint64_t hash_of(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint8_t byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

Head head_of(std::span<const uint8_t> bytes) {
  Head head;
  head.bytes = bytes.size();
  head.hash = hash_of(bytes);
  return head;
}

} // namespace

std::vector<uint8_t> read_kept_pipelines(const std::string& path) {
  const auto file = formats::MappedFile::open(path);
  if (!file.ok() || file->bytes().size() < sizeof(Head) || file->bytes().size() - sizeof(Head) > kMostKeptBytes)
    return {};
  const auto bytes = file->bytes().subspan(sizeof(Head));
  const Head expected = head_of(bytes);
  if (std::memcmp(file->bytes().data(), &expected, sizeof(Head)) != 0)
    return {};
  return {bytes.begin(), bytes.end()};
}

Status write_kept_pipelines(const std::string& path, std::span<const uint8_t> bytes) {
  std::error_code ignored; // what cannot be made is told by the file
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  CORTIQ_ASSIGN_OR_RETURN(formats::AtomicFile file, formats::AtomicFile::create(path));
  const Head head = head_of(bytes);
  CORTIQ_RETURN_IF_ERROR(file.write(std::span(reinterpret_cast<const uint8_t*>(&head), sizeof(head))));
  CORTIQ_RETURN_IF_ERROR(file.write(bytes));
  return file.commit();
}

} // namespace cortiq::runtime::vulkan
