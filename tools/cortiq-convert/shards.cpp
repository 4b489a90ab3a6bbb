#include "tools/cortiq-convert/shards.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "formats/input_files.h"
#include "formats/part_files.h"
#include "formats/quote.h"

namespace cortiq::convert {

using formats::CodecId;
using formats::quote;

namespace {

constexpr uint64_t kLeastSize = 1 << 20;
constexpr size_t kMostShards = 99999; // what five digits count

/// The payload, or the most that it can become where its content decides: eight bits a weight and its tables.
StatusOr<uint64_t> payload_bound(const Target& target) {
  const uint64_t rows = target.source->rows(), cols = target.source->cols();
  CORTIQ_ASSIGN_OR_RETURN(const uint64_t least, target.codec->payload_bytes(*target.codec, rows, cols));
  const CodecId id = target.codec->id;
  if (id != CodecId::kVBit && id != CodecId::kVBitRO && id != CodecId::kQ1S && id != CodecId::kQ1T)
    return least;
  return std::max(least, rows * (cols + cols / 16 + 5) + 4);
}

Status system_error(const std::string& what, const std::string& path) {
  return io_error(what + " " + quote(path) + ": " + std::strerror(errno));
}

} // namespace

StatusOr<uint64_t> parse_shard_size(const std::string& text) {
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  const std::string_view unit(rest, static_cast<size_t>(end - rest));
  const int shift = unit == "M" ? 20 : unit == "G" ? 30 : unit.empty() ? 0 : -1;
  if (error != std::errc() || shift < 0 || value > UINT64_MAX >> shift || value << shift < kLeastSize)
    return invalid("--shard-size takes a number of bytes, at least 1M, like 1500M or 4G, not " + quote(text));
  return value << shift;
}

StatusOr<std::vector<std::vector<Target>>> divide(const std::vector<Target>& targets, uint64_t size) {
  std::vector<std::vector<Target>> shards(1);
  uint64_t filled = 0;
  for (const Target& target : targets) {
    CORTIQ_ASSIGN_OR_RETURN(const uint64_t bytes, payload_bound(target));
    if (size != 0 && filled != 0 && (bytes > size || filled > size - bytes)) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(target);
    filled += bytes;
  }
  if (shards.size() > kMostShards)
    return invalid("the result would have " + std::to_string(shards.size()) + " shards; choose a larger --shard-size");
  return shards;
}

StatusOr<ShardFiles> ShardFiles::create(const std::string& output, size_t count) {
  if (!output.ends_with(".cmf"))
    return invalid(quote(output) + " does not end in .cmf, which the names of shards need");
  ShardFiles out;
  const std::filesystem::path path(output);
  out.folder_ = path.has_parent_path() ? path.parent_path().string() : ".";
  out.stem_ = path.stem().string();
  out.count_ = count;
  for (size_t i = 0; i < count; ++i) {
    struct stat info{};
    const std::string destination = out.destination(i);
    if (stat(destination.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      return io_error("cannot write " + quote(destination) + ": it exists and is not a regular file");
    CORTIQ_RETURN_IF_ERROR(formats::check_protected(destination));
  }
  CORTIQ_ASSIGN_OR_RETURN(formats::Part part, formats::create_part(output, /*folder=*/true));
  out.temporary_ = std::move(part.path);
  out.fd_ = part.fd;
  return out;
}

ShardFiles::ShardFiles(ShardFiles&& other) noexcept
    : folder_(std::move(other.folder_)), stem_(std::move(other.stem_)), temporary_(std::exchange(other.temporary_, {})),
      count_(other.count_), fd_(std::exchange(other.fd_, -1)) {}

ShardFiles::~ShardFiles() {
  if (temporary_.empty())
    return;
  std::error_code ignored; // nothing can be done about it here
  std::filesystem::remove_all(temporary_, ignored);
  for (size_t i = 0; i < count_; ++i)
    formats::unwatch_part(path(i));
  formats::unwatch_part(temporary_);
  close(fd_);
}

std::string ShardFiles::name(size_t index) const {
  char tag[32];
  std::snprintf(tag, sizeof tag, "-%05zu-of-%05zu.cmf", index + 1, count_);
  return stem_ + tag;
}

std::string ShardFiles::path(size_t index) const {
  return temporary_ + "/" + name(index);
}

void ShardFiles::written(size_t index) {
  formats::watch_part(path(index));
}

Status ShardFiles::publish() {
  const std::string first = destination(0);
  if (unlink(first.c_str()) != 0 && errno != ENOENT)
    return system_error("cannot replace", first);
  for (size_t i = count_; i-- > 0;) {
    const std::string to = destination(i);
    if (rename(path(i).c_str(), to.c_str()) != 0)
      return system_error("cannot write", to);
    formats::unwatch_part(path(i));
  }
  if (const int folder = open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    fsync(folder); // makes the names durable; the files themselves already are
    close(folder);
  }
  return {};
}

} // namespace cortiq::convert
