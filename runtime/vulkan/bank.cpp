#include "runtime/vulkan/bank.h"

#include <algorithm>
#include <cstdio>

#include "formats/artifact/shader_abi.h"

namespace cortiq::runtime::vulkan {
namespace {

using namespace formats;

// An expert has to be wanted so much oftener than the one whose slot it takes: a move costs what several uses do.
constexpr uint32_t kMargin = 4;
constexpr uint64_t kForget = 64; // steps behind which uses count half
constexpr unsigned kMovesAStep = 2;

double mega(uint64_t bytes) {
  return static_cast<double>(bytes) * 1e-6;
}

} // namespace

StatusOr<std::unique_ptr<Bank>> Bank::make(std::shared_ptr<Device> device, const LoadedArtifact& artifact,
                                           const artifact::GpuBank& table, std::vector<uint32_t> layers,
                                           uint64_t others, const GpuOptions& options) {
  std::unique_ptr<Bank> bank(new Bank(std::move(device), artifact, table));
  for (const uint32_t layer : layers) {
    bank->first_[layer] = static_cast<uint32_t>(bank->experts_.size());
    for (uint32_t e = 0; e < table.layers()->Get(layer)->gate()->size(); ++e)
      bank->experts_.emplace_back(layer, e);
  }
  const artifact::GpuBankLayer& first = *table.layers()->Get(layers.at(0));
  bank->gate_bytes_ = artifact.resolver.weights[first.gate()->Get(0)].bytes.size();
  bank->down_bytes_ = artifact.resolver.weights[first.down()->Get(0)].bytes.size();
  const Device& on = *bank->device_;
  BankRequest request;
  request.experts = bank->experts_.size();
  request.slots = options.room.slots;
  request.segments = options.room.segments;
  request.memory = options.room.memory != 0 ? std::min(options.room.memory, on.free_memory()) : on.free_memory();
  request.others = others;
  request.outer_bytes = 2 * bank->gate_bytes_;
  request.down_bytes = bank->down_bytes_;
  request.largest = std::min(on.largest_matrix(), on.largest_allocation());
  const uint32_t bound =
      std::min(on.limits().maxPerStageDescriptorStorageBuffers, on.limits().maxDescriptorSetStorageBuffers);
  request.most_segments = std::min(bound - std::min<uint32_t>(bound, kBindBank), kBankMostSegments);
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<BankSize> sizes, bank_sizes(request));
  Status status;
  for (const BankSize& size : sizes) {
    if (!status.ok())
      bank->note_ = "the expert bank has " + std::to_string(size.segments) + " segments: " + status.message();
    status = bank->allocate(size);
    if (status.ok())
      return bank;
  }
  return status;
}

Status Bank::allocate(const BankSize& size) {
  size_ = size;
  outer_.clear();
  down_.clear();
  for (uint64_t s = 0; s < size.used_segments; ++s) {
    CORTIQ_ASSIGN_OR_RETURN(Buffer outer, Buffer::make(device_, size.segment_slots * 2 * gate_bytes_, Place::kDevice,
                                                       "experts' gate and up"));
    outer_.push_back(std::move(outer));
    CORTIQ_ASSIGN_OR_RETURN(Buffer down,
                            Buffer::make(device_, size.segment_slots * down_bytes_, Place::kDevice, "experts' down"));
    down_.push_back(std::move(down));
  }
  return {};
}

Status Bank::put(Uploader& uploader, const Expert& expert) {
  const artifact::GpuBankLayer& layer = this->layer(expert.layer);
  const auto bytes = [&](const auto* list) { return artifact_.resolver.weights[list->Get(expert.number)].bytes; };
  const uint64_t segment = expert.slot / size_.segment_slots, at = expert.slot % size_.segment_slots;
  CORTIQ_RETURN_IF_ERROR(uploader.write(outer_[segment], at * 2 * gate_bytes_, bytes(layer.gate())));
  CORTIQ_RETURN_IF_ERROR(uploader.write(outer_[segment], (at * 2 + 1) * gate_bytes_, bytes(layer.up())));
  return uploader.write(down_[segment], at * down_bytes_, bytes(layer.down()));
}

Status Bank::put_table(Uploader& uploader, const Buffer& vectors, uint32_t layer) const {
  std::vector<uint32_t> slots;
  for (uint32_t e = first_.at(layer); e < experts_.size() && experts_[e].layer == layer; ++e)
    slots.push_back(experts_[e].slot == kNone ? kNoBankSlot : experts_[e].slot);
  return uploader.write(vectors, this->layer(layer).remap() * sizeof(float),
                        {reinterpret_cast<const uint8_t*>(slots.data()), slots.size() * sizeof(uint32_t)});
}

Status Bank::fill(Uploader& uploader, const Buffer& vectors) {
  // Every layer gets as many as the others: what a token chooses is not known yet.
  std::vector<uint32_t> order(experts_.size());
  for (uint32_t i = 0; i < order.size(); ++i)
    order[i] = i;
  std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(experts_[i].number, i); });
  order.resize(std::min<uint64_t>(size_.slots(), order.size()));
  for (uint32_t slot = 0; slot < order.size(); ++slot) {
    experts_[order[slot]].slot = slot;
    CORTIQ_RETURN_IF_ERROR(put(uploader, experts_[order[slot]]));
  }
  return put_tables(uploader, vectors);
}

Status Bank::put_tables(Uploader& uploader, const Buffer& vectors) const {
  for (const auto& [layer, first] : first_)
    CORTIQ_RETURN_IF_ERROR(put_table(uploader, vectors, layer));
  return {};
}

uint64_t Bank::bytes() const {
  return size_.slots() * (2 * gate_bytes_ + down_bytes_);
}

void Bank::use(uint32_t layer, uint32_t expert, bool missing) {
  uses_.fetch_add(1, std::memory_order_relaxed);
  cold_.fetch_add(missing, std::memory_order_relaxed);
  experts_[first_.at(layer) + expert].wanted.fetch_add(1, std::memory_order_relaxed);
}

Status Bank::settle(const Buffer& vectors) {
  const std::unique_lock alone(mutex_, std::try_to_lock);
  if (!alone.owns_lock() || complete())
    return {};
  const auto wanted = [](const Expert& e) { return e.wanted.load(std::memory_order_relaxed); };
  for (unsigned move = 0; move < kMovesAStep; ++move) {
    Expert *most = nullptr, *least = nullptr;
    for (Expert& e : experts_) {
      if (e.slot == kNone && (!most || wanted(e) > wanted(*most)))
        most = &e;
      if (e.slot != kNone && (!least || wanted(e) < wanted(*least)))
        least = &e;
    }
    if (!most || !least || wanted(*most) < wanted(*least) + kMargin)
      break;
    if (!uploader_) {
      CORTIQ_ASSIGN_OR_RETURN(uploader_, Uploader::make(device_));
    }
    most->slot = std::exchange(least->slot, kNone);
    ++moves_;
    CORTIQ_RETURN_IF_ERROR(put(*uploader_, *most));
    CORTIQ_RETURN_IF_ERROR(put_table(*uploader_, vectors, most->layer));
    CORTIQ_RETURN_IF_ERROR(put_table(*uploader_, vectors, least->layer));
    CORTIQ_RETURN_IF_ERROR(uploader_->finish());
    moved_bytes_.fetch_add(2 * gate_bytes_ + down_bytes_, std::memory_order_relaxed);
  }
  if (++steps_ % kForget == 0)
    for (Expert& e : experts_)
      e.wanted.store(wanted(e) / 2, std::memory_order_relaxed);
  return {};
}

BankCounts Bank::counts() const {
  return {uses_.load(std::memory_order_relaxed), cold_.load(std::memory_order_relaxed),
          moved_bytes_.load(std::memory_order_relaxed)};
}

std::string Bank::describe() const {
  const BankCounts c = counts();
  char line[240];
  std::snprintf(line, sizeof(line),
                "experts on the GPU: room for %llu of %zu, %.1f MB in %llu of %u segments; %.1f%% of %llu uses there, "
                "%llu run by the CPU; moved %.1f MB\n",
                static_cast<unsigned long long>(std::min<uint64_t>(size_.slots(), experts_.size())), experts_.size(),
                mega(bytes()), static_cast<unsigned long long>(size_.used_segments), size_.segments,
                c.uses != 0 ? 100.0 * static_cast<double>(c.uses - c.cold) / static_cast<double>(c.uses) : 0.0,
                static_cast<unsigned long long>(c.uses), static_cast<unsigned long long>(c.cold), mega(c.moved_bytes));
  return line;
}

} // namespace cortiq::runtime::vulkan
