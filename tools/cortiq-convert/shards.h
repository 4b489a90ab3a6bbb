#pragma once

// A result in several files: which tensor goes where, and that all of them appear together.

#include <string>
#include <vector>

#include "formats/status.h"
#include "tools/cortiq-convert/plan.h"

namespace cortiq::convert {

/// Divides the targets, in their order, into stretches of at most `size` bytes of payload; 0 = one stretch. A tensor is
/// never divided, and payloads whose size only writing tells are taken as large as they can become.
StatusOr<std::vector<std::vector<Target>>> divide(const std::vector<Target>& targets, uint64_t size);

/// "1500M" or "4G" or a number of bytes; at least a MiB.
StatusOr<uint64_t> parse_shard_size(const std::string& text);

/// The files of one sharded result, in a folder under a temporary name until publish(). Without it the destructor
/// removes the folder.
class ShardFiles {
public:
  /// `output` is OUT.cmf; the files become OUT-00001-of-0000N.cmf.
  static StatusOr<ShardFiles> create(const std::string& output, size_t count);
  ShardFiles(ShardFiles&& other) noexcept;
  ShardFiles& operator=(ShardFiles&&) = delete;
  ~ShardFiles();

  /// Where shard `index`, from 0, is to be written.
  std::string path(size_t index) const;
  /// Where it is after publish().
  std::string destination(size_t index) const { return folder_ + "/" + name(index); }
  /// Tells that it is there.
  void written(size_t index);
  /// Gives all files their names, the first last: until then there is nothing that can be opened.
  Status publish();

private:
  ShardFiles() = default;
  std::string name(size_t index) const;

  std::string folder_, stem_, temporary_; ///< of the result, its name without .cmf, the temporary folder
  size_t count_ = 0;
  int fd_ = -1; ///< of the temporary folder's lock
};

} // namespace cortiq::convert
