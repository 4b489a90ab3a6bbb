#include "runtime/vulkan/module_needs.h"

#include <unordered_map>

#include "formats/artifact/shader_abi.h"

namespace cortiq::runtime::vulkan {
namespace {

// Of the SPIR-V specification.
enum Opcode : uint32_t {
  kExecutionMode = 16,
  kCapability = 17,
  kTypeBool = 20,
  kTypeInt = 21,
  kTypeFloat = 22,
  kTypeVector = 23,
  kTypeMatrix = 24,
  kTypeArray = 28,
  kTypeStruct = 30,
  kTypePointer = 32,
  kConstant = 43,
  kConstantComposite = 44,
  kVariable = 59,
  kDecorate = 71,
};
constexpr uint32_t kHeaderWords = 5, kLocalSize = 17, kSpecId = 1, kBuiltIn = 11, kWorkgroupSize = 25, kWorkgroup = 4;

class Reader {
public:
  ModuleNeeds read(std::span<const uint32_t> code) {
    for (size_t at = kHeaderWords; at < code.size();) {
      const size_t words = code[at] >> 16;
      if (words == 0 || words > code.size() - at)
        break;
      take(static_cast<Opcode>(code[at] & 0xffff), code.subspan(at, words));
      at += words;
    }
    return needs_;
  }

private:
  uint64_t value(uint32_t id) const {
    const auto found = constants_.find(id);
    return found == constants_.end() ? 0 : found->second;
  }
  uint64_t size(uint32_t type) const {
    const auto found = sizes_.find(type);
    return found == sizes_.end() ? 0 : found->second;
  }

  void take(Opcode opcode, std::span<const uint32_t> op) {
    if (op.size() < 2)
      return;
    switch (opcode) {
    case kCapability:
      if (op.size() == 2)
        needs_.capabilities.push_back(op[1]);
      break;
    case kExecutionMode:
      if (op.size() == 6 && op[2] == kLocalSize)
        needs_.invocations = uint64_t{op[3]} * op[4] * op[5];
      break;
    case kDecorate:
      if (op.size() == 4 && op[2] == kBuiltIn && op[3] == kWorkgroupSize)
        workgroup_size_ = op[1];
      if (op.size() == 4 && op[2] == kSpecId && op[3] == formats::kSpecCache)
        needs_.open_cache = true;
      break;
    case kTypeBool:
      if (op.size() == 2)
        sizes_[op[1]] = 4;
      break;
    case kTypeInt:
    case kTypeFloat:
      if (op.size() >= 3)
        sizes_[op[1]] = op[2] / 8;
      break;
    case kTypeVector:
    case kTypeMatrix:
      if (op.size() == 4)
        sizes_[op[1]] = size(op[2]) * op[3];
      break;
    case kTypeArray:
      if (op.size() == 4)
        sizes_[op[1]] = size(op[2]) * value(op[3]);
      break;
    case kTypeStruct:
      for (const uint32_t member : op.subspan(2))
        sizes_[op[1]] += size(member);
      break;
    case kTypePointer:
      if (op.size() == 4 && op[2] == kWorkgroup)
        shared_[op[1]] = size(op[3]);
      break;
    case kConstant:
      if (op.size() >= 4)
        constants_[op[2]] = op[3];
      break;
    case kConstantComposite:
      // With a constant of this kind the mode above counts no more.
      if (op.size() == 6 && op[2] == workgroup_size_)
        needs_.invocations = value(op[3]) * value(op[4]) * value(op[5]);
      break;
    case kVariable:
      if (op.size() >= 4 && op[3] == kWorkgroup)
        if (const auto found = shared_.find(op[1]); found != shared_.end())
          needs_.shared_bytes += found->second;
      break;
    }
  }

  ModuleNeeds needs_;
  uint32_t workgroup_size_ = 0;
  std::unordered_map<uint32_t, uint64_t> constants_, sizes_, shared_;
};

} // namespace

ModuleNeeds module_needs(std::span<const uint32_t> code) {
  return Reader().read(code);
}

} // namespace cortiq::runtime::vulkan
