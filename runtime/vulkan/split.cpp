#include "runtime/vulkan/split.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

namespace cortiq::runtime::vulkan {
namespace {

constexpr uint64_t kUnitBytes = 16; // of stacks

/// Bytes of weights that each step is the first to read.
std::vector<uint64_t> step_bytes(const LoadedArtifact& artifact, const artifact::GpuProgram& program) {
  const Steps& steps = *program.steps();
  std::map<uint32_t, uint64_t> stacked; // bytes of all that a first matrix stands for
  for (uint32_t i = 0; program.stacks() && i < program.stacks()->size(); ++i) {
    const artifact::GpuStack& stack = *program.stacks()->Get(i);
    stacked[stack.weights()->Get(0)] = stack.weights()->size() * uint64_t{stack.units()} * kUnitBytes;
  }
  std::vector<uint64_t> out(steps.size());
  std::set<uint32_t> seen;
  for (uint32_t s = 0; s < steps.size(); ++s)
    for_each_dispatch(*steps[s], [&](const artifact::GpuDispatch& d) {
      if (d.bank() == artifact::BankPart::GateUp) {
        const artifact::GpuBankLayer& layer = *program.bank()->layers()->Get(d.bank_layer());
        for (const auto* role : {layer.gate(), layer.up(), layer.down()})
          for (const uint32_t index : *role)
            out[s] += artifact.resolver.weights[index].bytes.size();
      }
      for (const uint32_t index : {d.weight(), d.weight2()})
        if (index != kNoIndex && seen.insert(index).second)
          out[s] += stacked.contains(index) ? stacked[index] : artifact.resolver.weights[index].bytes.size();
    });
  return out;
}

/// Whether the program may be cut in front of each step.
std::vector<bool> cuts(const Steps& steps) {
  std::vector<bool> out(steps.size(), true);
  out[0] = false;
  std::map<uint32_t, uint32_t> first; // step of each group
  for (uint32_t s = 0; s < steps.size(); ++s) {
    if (s > 0 && (steps[s]->first_stage() == steps[s - 1]->first_stage() ||
                  (steps[s]->unit() != kNoIndex && steps[s]->unit() == steps[s - 1]->unit())))
      out[s] = false;
    if (steps[s]->together() == kNoIndex)
      continue;
    const auto [at, is_first] = first.try_emplace(steps[s]->together(), s);
    for (uint32_t between = at->second + 1; between <= s; ++between)
      out[between] = false;
  }
  return out;
}

/// Slots that a step in front of `cut` writes and one behind it reads before they are written again. Only those: what
/// is written again may share its memory with them.
std::vector<uint32_t> carried(const Steps& steps, uint32_t cut) {
  std::set<uint32_t> written, anew, out;
  const auto each = [](const auto* slots, auto use) {
    for (uint32_t i = 0; slots && i < slots->size(); ++i)
      use(slots->Get(i));
  };
  for (uint32_t s = 0; s < cut; ++s)
    each(steps[s]->writes(), [&](uint32_t slot) { written.insert(slot); });
  for (uint32_t s = cut; s < steps.size(); ++s) {
    each(steps[s]->reads(), [&](uint32_t slot) {
      if (written.contains(slot) && !anew.contains(slot))
        out.insert(slot);
    });
    each(steps[s]->writes(), [&](uint32_t slot) { anew.insert(slot); });
  }
  return {out.begin(), out.end()};
}

class SplitSession final : public GpuSession {
public:
  explicit SplitSession(std::vector<std::unique_ptr<VulkanSession>> parts, std::string names)
      : parts_(std::move(parts)), names_(std::move(names)) {}

  Status step(const StepContext& context, uint64_t count, uint64_t head_first, uint64_t head_count, Want want,
              const RunStages& run_stages) override {
    for (size_t p = 0; p < parts_.size(); ++p) {
      const bool last = p + 1 == parts_.size();
      CORTIQ_RETURN_IF_ERROR(
          // Steps of the head begin in the last layer, wherever that is; ids are chosen at the end of the program only.
          parts_[p]->step(context, count, head_first, head_count, last ? want : Want::kIds, run_stages));
      if (!last)
        parts_[p]->carry_to(*parts_[p + 1], count);
    }
    return {};
  }
  Status bring_states(std::span<float* const> states, uint64_t position) override {
    for (const auto& part : parts_)
      CORTIQ_RETURN_IF_ERROR(part->bring_states(states, position));
    return {};
  }
  bool can_pick() const override { return parts_.back()->can_pick(); }
  uint32_t picked(uint64_t head) const override { return parts_.back()->picked(head); }
  bool can_top() const override { return parts_.back()->can_top(); }
  void ask_top(const TopAsk& ask) override { parts_.back()->ask_top(ask); }
  TopLogits top() const override { return parts_.back()->top(); }
  Status fetch_row(uint8_t* arena, uint64_t row) override { return parts_.back()->fetch_row(arena, row); }
  bool failed() const override {
    return std::ranges::any_of(parts_, [](const auto& part) { return part->failed(); });
  }
  uint32_t overflowed_layer() const override {
    for (const auto& part : parts_)
      if (part->overflowed_layer() != 0)
        return part->overflowed_layer();
    return 0;
  }
  std::string report() const override {
    std::string out = names_;
    for (const auto& part : parts_)
      out += part->report();
    return out;
  }
  void add_profile(Profile& profile) const override {
    for (const auto& part : parts_)
      part->add_profile(profile);
  }
  void reset_profile() override {
    for (const auto& part : parts_)
      part->reset_profile();
  }
  GpuCounts counts() const override {
    GpuCounts out;
    for (const auto& part : parts_) {
      const GpuCounts one = part->counts();
      out.steps = one.steps;
      out.dispatches += one.dispatches;
      out.barriers += one.barriers;
      out.cpu_stages += one.cpu_stages;
      out.matrices += one.matrices;
    }
    return out;
  }
  uint64_t device_bytes() const override {
    uint64_t bytes = 0;
    for (const auto& part : parts_)
      bytes += part->device_bytes();
    return bytes;
  }

private:
  std::vector<std::unique_ptr<VulkanSession>> parts_;
  std::string names_;
};

} // namespace

StatusOr<std::vector<StepRange>> split_steps(const LoadedArtifact& artifact, const artifact::GpuProgram& program,
                                             std::span<const uint64_t> free_bytes) {
  const Steps& steps = *program.steps();
  const std::vector<uint64_t> bytes = step_bytes(artifact, program);
  const std::vector<bool> may_cut = cuts(steps);
  if (std::ranges::any_of(steps, [](const auto* step) { return step->stages() == 0; }))
    return unsupported("this artifact cannot be split among GPUs; compile the model again");
  double total = 0, free = 0;
  for (const uint64_t b : bytes)
    total += static_cast<double>(b);
  for (const uint64_t b : free_bytes)
    free += static_cast<double>(b);
  std::vector<StepRange> out;
  uint32_t first = 0;
  double share = 0, done = 0; // of memory, of weights in front of the step
  for (size_t part = 0; part < free_bytes.size(); ++part) {
    share += free > 0 ? static_cast<double>(free_bytes[part]) / free : 1.0 / static_cast<double>(free_bytes.size());
    uint32_t end = first;
    const bool last = part + 1 == free_bytes.size();
    while (end < steps.size() && (last || end == first || !may_cut[end] || done < total * share))
      done += static_cast<double>(bytes[end++]);
    if (end == first)
      return unsupported("the model has too few layers for " + std::to_string(free_bytes.size()) + " GPUs");
    out.push_back({first, end, first == 0 ? std::vector<uint32_t>() : carried(steps, first),
                   end == steps.size() ? std::vector<uint32_t>() : carried(steps, end)});
    first = end;
  }
  return out;
}

StatusOr<std::shared_ptr<const GpuModel>> SplitModel::load(const LoadedArtifact& artifact,
                                                           const artifact::GpuProgram& program,
                                                           std::vector<std::shared_ptr<Device>> devices,
                                                           const GpuOptions& options) {
  std::vector<uint64_t> free_bytes;
  for (const auto& device : devices)
    free_bytes.push_back(device->free_memory());
  CORTIQ_ASSIGN_OR_RETURN(const std::vector<StepRange> ranges, split_steps(artifact, program, free_bytes));
  std::shared_ptr<SplitModel> model(new SplitModel());
  for (size_t p = 0; p < devices.size(); ++p) {
    model->info_.name += (p == 0 ? "" : " + ") + devices[p]->info().name;
    model->info_.driver = devices[p]->info().driver;
    model->info_.kind = devices[p]->info().kind;
    model->info_.memory += devices[p]->info().memory;
    CORTIQ_ASSIGN_OR_RETURN(std::shared_ptr<const VulkanModel> part,
                            VulkanModel::make(artifact, program, devices[p], ranges[p], options));
    model->parts_.push_back(std::move(part));
  }
  return std::shared_ptr<const GpuModel>(std::move(model));
}

StatusOr<std::unique_ptr<GpuSession>> SplitModel::session(uint64_t positions, bool profile) const {
  std::vector<std::unique_ptr<VulkanSession>> parts;
  std::string names;
  for (const auto& part : parts_) {
    CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<VulkanSession> one, VulkanSession::make(part, positions, profile));
    parts.push_back(std::move(one));
    names += "GPU " + part->device().name + ": steps " + std::to_string(part->range().first) + " to " +
             std::to_string(part->range().end - 1) + ", " + std::to_string(part->device_bytes() >> 10) +
             " KiB of weights\n";
  }
  return std::unique_ptr<GpuSession>(std::make_unique<SplitSession>(std::move(parts), std::move(names)));
}

uint64_t SplitModel::device_bytes() const {
  uint64_t bytes = 0;
  for (const auto& part : parts_)
    bytes += part->device_bytes();
  return bytes;
}

std::string SplitModel::fallbacks() const {
  std::string out;
  for (const auto& part : parts_)
    if (const std::string one = part->fallbacks(); !one.empty())
      out += (out.empty() ? "" : "\n") + one;
  return out;
}

std::string SplitModel::refusals() const {
  std::string out;
  for (const auto& part : parts_)
    if (const std::string one = part->refusals(); !one.empty())
      out += (out.empty() ? "" : "\n") + one;
  return out;
}

std::vector<GpuPipeline> SplitModel::pipelines() const {
  std::vector<GpuPipeline> out;
  for (const auto& part : parts_)
    for (GpuPipeline& pipeline : part->pipelines())
      out.push_back(std::move(pipeline));
  return out;
}

bool SplitModel::lost() const {
  return std::ranges::any_of(parts_, [](const auto& part) { return part->lost(); });
}

} // namespace cortiq::runtime::vulkan
