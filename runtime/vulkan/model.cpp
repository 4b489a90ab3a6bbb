#include "runtime/vulkan/model.h"

#include <algorithm>
#include <set>

#include "formats/artifact/shader_abi.h"
#include "formats/quote.h"

namespace cortiq::runtime::vulkan {
namespace {

constexpr uint64_t kMostBlockBytes = uint64_t{1} << 30;
// A matrix is read in vectors of 16 bytes up to its last byte.
constexpr uint64_t kReadPadding = 64;

uint64_t round_up(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

} // namespace

StatusOr<std::shared_ptr<const GpuModel>> VulkanModel::load(const LoadedArtifact& artifact, const GpuOptions& options) {
  if (!artifact.program_table->gpu())
    return unsupported("this artifact was compiled for the CPU only; compile the model with --target vulkan");
  CORTIQ_ASSIGN_OR_RETURN(std::shared_ptr<Device> device, Device::open(options.device));
  const artifact::GpuProgram* program = artifact.program_table->gpu();
  if (const auto* profiles = artifact.program_table->gpu_profiles())
    for (uint32_t i = 0; i < profiles->size() && program == artifact.program_table->gpu(); ++i)
      if ((profiles->Get(i)->needs() & ~device->offers()) == 0)
        program = profiles->Get(i);
  CORTIQ_RETURN_IF_ERROR(check_gpu_program(artifact, *program));
  std::shared_ptr<VulkanModel> model(new VulkanModel(artifact, *program, std::move(device)));
  CORTIQ_RETURN_IF_ERROR(model->make_layouts());
  CORTIQ_RETURN_IF_ERROR(model->make_pipelines());
  CORTIQ_RETURN_IF_ERROR(model->put_weights(options));
  return std::shared_ptr<const GpuModel>(std::move(model));
}

VulkanModel::~VulkanModel() {
  const VolkDeviceTable& call = device_->call();
  for (const VkPipeline pipeline : pipelines_)
    call.vkDestroyPipeline(device_->handle(), pipeline, nullptr);
  if (pipeline_layout_)
    call.vkDestroyPipelineLayout(device_->handle(), pipeline_layout_, nullptr);
  if (set_layout_)
    call.vkDestroyDescriptorSetLayout(device_->handle(), set_layout_, nullptr);
}

Status VulkanModel::put_weights(const GpuOptions& options) {
  const std::vector<WeightRef>& table = artifact_.resolver.weights;
  // Weights that are bound together lie side by side.
  std::set<uint32_t> used;
  std::vector<std::vector<uint32_t>> units;
  for_each_dispatch(program_, [&](const artifact::GpuDispatch& d) {
    if (d.weight2() != kNoIndex && used.insert(d.weight()).second && used.insert(d.weight2()).second)
      units.push_back({d.weight(), d.weight2()});
  });
  for_each_dispatch(program_, [&](const artifact::GpuDispatch& d) {
    if (d.weight() != kNoIndex && used.insert(d.weight()).second)
      units.push_back({d.weight()});
  });
  const uint64_t alignment = std::max<uint64_t>(256, device_->limits().minStorageBufferOffsetAlignment);
  auto bytes_of = [&](const std::vector<uint32_t>& unit) {
    uint64_t bytes = 0;
    for (const uint32_t index : unit)
      bytes += round_up(table[index].bytes.size() + kReadPadding, alignment);
    return bytes;
  };
  uint64_t total = program_.vector_floats() * 4, done = 0;
  for (const std::vector<uint32_t>& unit : units) {
    total += bytes_of(unit);
    if (bytes_of(unit) > device_->limits().maxStorageBufferRange)
      return unsupported("weight " + formats::quote(table[unit[0]].entry->name()->string_view()) + " has " +
                         std::to_string(bytes_of(unit)) + " bytes, " + device_->info().name + " binds at most " +
                         std::to_string(device_->limits().maxStorageBufferRange));
  }
  if (total > device_->info().memory)
    return unsupported("the model has " + std::to_string(total >> 20) + " MiB of weights, " + device_->info().name +
                       " has " + std::to_string(device_->info().memory >> 20) + " MiB of memory");
  CORTIQ_ASSIGN_OR_RETURN(std::unique_ptr<Uploader> uploader, Uploader::make(device_));
  auto report = [&](uint64_t bytes) {
    done += bytes;
    if (options.progress)
      options.progress(done, total);
  };

  CORTIQ_ASSIGN_OR_RETURN(vectors_,
                          Buffer::make(device_, std::max<uint64_t>(64, total ? program_.vector_floats() * 4 : 0),
                                       Place::kDevice, "vectors"));
  device_bytes_ += vectors_.bytes();
  for (const artifact::GpuVector* vector : *program_.vectors())
    CORTIQ_RETURN_IF_ERROR(uploader->write(vectors_, vector->start() * 4, table[vector->weight()].bytes));
  report(program_.vector_floats() * 4);

  // Blocks of many weights: a device may allow few allocations only.
  const uint64_t most = std::min(kMostBlockBytes, device_->largest_allocation());
  for (size_t next = 0; next < units.size();) {
    uint64_t size = 0;
    size_t last = next;
    for (; last < units.size() && (size == 0 || size + bytes_of(units[last]) <= most); ++last)
      size += bytes_of(units[last]);
    CORTIQ_ASSIGN_OR_RETURN(Buffer block, Buffer::make(device_, size, Place::kDevice, "weights"));
    device_bytes_ += size;
    uint64_t offset = 0;
    for (; next < last; ++next)
      for (const uint32_t index : units[next]) {
        const std::span<const uint8_t> bytes = table[index].bytes;
        CORTIQ_RETURN_IF_ERROR(uploader->write(block, offset, bytes));
        weights_[index] = {block.handle(), offset, bytes.size() + kReadPadding};
        offset += round_up(bytes.size() + kReadPadding, alignment);
        report(round_up(bytes.size() + kReadPadding, alignment));
      }
    blocks_.push_back(std::move(block));
  }
  return uploader->finish();
}

Status VulkanModel::make_layouts() {
  VkDescriptorSetLayoutBinding bindings[formats::kShaderBindings];
  for (uint32_t i = 0; i < formats::kShaderBindings; ++i)
    bindings[i] = {.binding = i,
                   .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                   .descriptorCount = 1,
                   .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                   .pImmutableSamplers = nullptr};
  VkDescriptorSetLayoutCreateInfo set{.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
                                      .bindingCount = formats::kShaderBindings,
                                      .pBindings = bindings};
  CORTIQ_VK(device_->call().vkCreateDescriptorSetLayout(device_->handle(), &set, nullptr, &set_layout_),
            "describing bindings");
  const VkPushConstantRange push{VK_SHADER_STAGE_COMPUTE_BIT, 0, formats::kPushWords * 4};
  VkPipelineLayoutCreateInfo layout{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                    .setLayoutCount = 1,
                                    .pSetLayouts = &set_layout_,
                                    .pushConstantRangeCount = 1,
                                    .pPushConstantRanges = &push};
  CORTIQ_VK(device_->call().vkCreatePipelineLayout(device_->handle(), &layout, nullptr, &pipeline_layout_),
            "describing bindings");
  return {};
}

Status VulkanModel::make_pipelines() {
  const VolkDeviceTable& call = device_->call();
  PipelineCache cache(device_);
  for (const artifact::GpuModule* module : *program_.modules()) {
    const std::string what = "shader " + formats::quote(module->name()->string_view());
    VkShaderModuleCreateInfo code{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                  .codeSize = module->code()->size() * sizeof(uint32_t),
                                  .pCode = module->code()->data()};
    VkShaderModule shader = VK_NULL_HANDLE;
    CORTIQ_VK(call.vkCreateShaderModule(device_->handle(), &code, nullptr, &shader), what);
    VkComputePipelineCreateInfo info{.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                     .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                               .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                               .module = shader,
                                               .pName = "main"},
                                     .layout = pipeline_layout_};
    VkPipeline pipeline = VK_NULL_HANDLE;
    const VkResult result =
        call.vkCreateComputePipelines(device_->handle(), cache.handle(), 1, &info, nullptr, &pipeline);
    call.vkDestroyShaderModule(device_->handle(), shader, nullptr);
    CORTIQ_VK(result, what);
    pipelines_.push_back(pipeline);
  }
  cache.keep();
  return {};
}

uint64_t VulkanModel::position_bytes(uint32_t layer) const {
  const KvShape& shape = artifact_.program.kv_layers[layer];
  return shape.kv_heads * (shape.k_dim + shape.v_dim) * (program_.cache_half() ? 2 : 4);
}

std::string VulkanModel::fallbacks() const {
  std::string out;
  for (const artifact::GpuStep* step : *program_.steps())
    if (!step->dispatches() || step->dispatches()->size() == 0)
      out += std::string(out.empty() ? "" : "\n") + (step->name() ? step->name()->str() : "") +
             " on the CPU: " + (step->reason() ? step->reason()->str() : "");
  return out;
}

} // namespace cortiq::runtime::vulkan

namespace cortiq::runtime {

StatusOr<std::shared_ptr<const GpuModel>> load_gpu_model(const LoadedArtifact& artifact, const GpuOptions& options) {
  return vulkan::VulkanModel::load(artifact, options);
}

} // namespace cortiq::runtime
