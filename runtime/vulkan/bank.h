#pragma once

// The expert bank of a model on a device: slots with experts of all layers, as they stand in the artifact, and for each
// layer a table that says in which slot an expert lies. Experts that are asked for more often than those that are there
// take their slots.

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "formats/artifact/artifact_generated.h"
#include "runtime/loader/load.h"
#include "runtime/vulkan/bank_size.h"
#include "runtime/vulkan/device.h"

namespace cortiq::runtime::vulkan {

/// Words that bank_remap leaves a token: how many experts are missing, then which, and their weights.
inline uint64_t missing_words(uint64_t chosen) {
  return 1 + 2 * chosen;
}

/// What a bank did since it was made.
struct BankCounts {
  uint64_t uses = 0, cold = 0; ///< experts that tokens chose; of them, those that the CPU ran
  uint64_t moved_bytes = 0;    ///< of experts that took others' slots
};

/// Thread-safe: steps hold lock() while they may read slots or tables.
class Bank {
public:
  /// A bank for `layers` of the program's, empty; `others` are bytes of other weights.
  static StatusOr<std::unique_ptr<Bank>> make(std::shared_ptr<Device> device, const LoadedArtifact& artifact,
                                              const artifact::GpuBank& table, std::vector<uint32_t> layers,
                                              uint64_t others, const GpuOptions& options);

  /// Puts the first experts of every layer into slots, and all tables among `vectors`.
  Status fill(Uploader& uploader, const Buffer& vectors);

  const artifact::GpuBankLayer& layer(uint32_t number) const { return *table_.layers()->Get(number); }
  uint32_t segments() const { return size_.segments; }
  uint32_t segment_slots() const { return static_cast<uint32_t>(size_.segment_slots); }
  /// Buffers of gate and up, and of down.
  const std::vector<Buffer>& outer() const { return outer_; }
  const std::vector<Buffer>& down() const { return down_; }
  /// Whether all experts have a slot, so that nobody is ever missing.
  bool complete() const { return size_.slots() >= experts_.size(); }
  uint64_t bytes() const;

  std::shared_lock<std::shared_mutex> lock() const { return std::shared_lock(mutex_); }
  /// Notes that tokens chose `expert` of a layer, and whether it was missing.
  void use(uint32_t layer, uint32_t expert, bool missing);
  /// The same of so many choices that are not known by number, none of them missing.
  void use(uint64_t choices) { uses_.fetch_add(choices, std::memory_order_relaxed); }
  /// Behind a step, without lock(): the most wanted of those that are missing takes the slot of the least wanted.
  /// Nothing while other steps run.
  Status settle(const Buffer& vectors);

  /// Another number whenever an expert has another slot.
  uint64_t moves() const { return moves_; }
  /// All tables into other vectors than the model's; with lock().
  Status put_tables(Uploader& uploader, const Buffer& vectors) const;

  BankCounts counts() const;
  /// Its size and its counts in a line, for people.
  std::string describe() const;
  /// Why there are fewer segments than were meant; empty = there are not.
  const std::string& note() const { return note_; }

private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Expert {
    uint32_t layer, number;
    uint32_t slot = kNone;
    std::atomic<uint32_t> wanted{0}; ///< of late
    Expert(uint32_t l, uint32_t n) : layer(l), number(n) {}
    Expert(Expert&& o) noexcept : layer(o.layer), number(o.number), slot(o.slot), wanted(o.wanted.load()) {}
  };

  Bank(std::shared_ptr<Device> device, const LoadedArtifact& artifact, const artifact::GpuBank& table)
      : device_(std::move(device)), artifact_(artifact), table_(table) {}
  Status allocate(const BankSize& size);
  Status put(Uploader& uploader, const Expert& expert);
  Status put_table(Uploader& uploader, const Buffer& vectors, uint32_t layer) const;

  std::shared_ptr<Device> device_;
  const LoadedArtifact& artifact_;
  const artifact::GpuBank& table_;
  uint64_t gate_bytes_ = 0, down_bytes_ = 0; ///< of a matrix
  BankSize size_;
  std::string note_;
  std::vector<Buffer> outer_, down_;
  std::vector<Expert> experts_;        ///< layer by layer
  std::map<uint32_t, uint32_t> first_; ///< of a layer among `experts_`
  std::unique_ptr<Uploader> uploader_; ///< made when something moves
  mutable std::shared_mutex mutex_;
  uint64_t steps_ = 0; ///< settled
  uint64_t moves_ = 0;
  std::atomic<uint64_t> uses_{0}, cold_{0}, moved_bytes_{0};
};

} // namespace cortiq::runtime::vulkan
