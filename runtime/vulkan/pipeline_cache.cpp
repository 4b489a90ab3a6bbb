#include "runtime/vulkan/pipeline_cache.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <unistd.h>

namespace cortiq::runtime::vulkan {
namespace {

constexpr uint64_t kMostBytes = 256 << 20;

std::string folder() {
  if (const char* set = std::getenv("XDG_CACHE_HOME"); set && *set == '/')
    return std::string(set) + "/cortiq";
  if (const char* home = std::getenv("HOME"); home && *home == '/')
    return std::string(home) + "/.cache/cortiq";
  return {};
}

std::string file_name(const VkPhysicalDeviceProperties& p) {
  std::string name = "vulkan-";
  char text[32];
  for (const uint32_t word : {p.vendorID, p.deviceID, p.driverVersion}) {
    std::snprintf(text, sizeof(text), "%08x-", word);
    name += text;
  }
  for (const uint8_t byte : p.pipelineCacheUUID) {
    std::snprintf(text, sizeof(text), "%02x", byte);
    name += text;
  }
  return name + ".bin";
}

/// In front of a driver's bytes: drivers look at their own header only, and trust the rest.
struct Head {
  char magic[8] = {'c', 'o', 'r', 't', 'i', 'q', 'v', '1'};
  uint64_t bytes = 0, hash = 0;
};

/// FNV-1a: it finds damage, not intent.
uint64_t hash_of(std::span<const char> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : bytes)
    hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  return hash;
}

/// What a whole file holds; nothing of any other.
std::vector<char> read_all(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  Head head;
  const Head expected;
  if (!in.read(reinterpret_cast<char*>(&head), sizeof(head)) ||
      std::memcmp(head.magic, expected.magic, sizeof(head.magic)) != 0 || head.bytes > kMostBytes)
    return {};
  std::vector<char> bytes(head.bytes);
  if (!in.read(bytes.data(), static_cast<std::streamsize>(bytes.size())) || hash_of(bytes) != head.hash)
    return {};
  return bytes;
}

} // namespace

PipelineCache::PipelineCache(std::shared_ptr<Device> device) : device_(std::move(device)) {
  if (const std::string where = folder(); !where.empty())
    path_ = where + "/" + file_name(device_->properties());
  const std::vector<char> bytes = path_.empty() ? std::vector<char>() : read_all(path_);
  // The driver holds the header against itself and starts empty when it does not fit.
  VkPipelineCacheCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                 .initialDataSize = bytes.size(),
                                 .pInitialData = bytes.data()};
  if (device_->call().vkCreatePipelineCache(device_->handle(), &info, nullptr, &cache_) == VK_SUCCESS) {
    known_bytes_ = bytes.size();
    return;
  }
  info.initialDataSize = 0;
  info.pInitialData = nullptr;
  if (device_->call().vkCreatePipelineCache(device_->handle(), &info, nullptr, &cache_) != VK_SUCCESS)
    cache_ = VK_NULL_HANDLE;
}

PipelineCache::~PipelineCache() {
  if (cache_)
    device_->call().vkDestroyPipelineCache(device_->handle(), cache_, nullptr);
}

void PipelineCache::keep() const {
  constexpr size_t kHeaderBytes = 32; // a driver that keeps nothing gives that only
  size_t size = 0;
  if (!cache_ || path_.empty() ||
      device_->call().vkGetPipelineCacheData(device_->handle(), cache_, &size, nullptr) != VK_SUCCESS ||
      size <= kHeaderBytes || size == known_bytes_ || size > kMostBytes)
    return;
  std::vector<char> bytes(size);
  if (device_->call().vkGetPipelineCacheData(device_->handle(), cache_, &size, bytes.data()) != VK_SUCCESS)
    return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), error);
  const std::string temporary = path_ + "." + std::to_string(getpid());
  std::ofstream out(temporary, std::ios::binary);
  bytes.resize(size);
  Head head;
  head.bytes = size;
  head.hash = hash_of(bytes);
  out.write(reinterpret_cast<const char*>(&head), sizeof(head));
  out.write(bytes.data(), static_cast<std::streamsize>(size));
  out.close();
  if (out)
    std::filesystem::rename(temporary, path_, error);
  if (!out || error)
    std::filesystem::remove(temporary, error);
}

} // namespace cortiq::runtime::vulkan
