#include "codegen/spirv/cooperative.h"

#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string_view>

namespace cortiq::codegen {
namespace {

// Of the SPIR-V specification and the two extensions.
constexpr uint32_t kExtension = 10, kCapability = 17, kTypeInt = 21, kConstantTrue = 41, kConstantFalse = 42,
                   kConstant = 43;
constexpr uint32_t kCapabilityNv = 5357, kTypeNv = 5358, kLoadNv = 5359, kStoreNv = 5360, kMulAddNv = 5361,
                   kLengthNv = 5362;
constexpr uint32_t kCapabilityKhr = 6022, kTypeKhr = 4456, kLoadKhr = 4457, kStoreKhr = 4458, kMulAddKhr = 4459,
                   kLengthKhr = 4460;
constexpr std::string_view kNameNv = "SPV_NV_cooperative_matrix", kNameKhr = "SPV_KHR_cooperative_matrix";
constexpr size_t kHeaderWords = 5, kBoundWord = 3;
constexpr uint32_t kUses = 3;       ///< first factor, second factor, sum
constexpr uint32_t kAllSigned = 15; ///< operand of a product: the components of both factors, the sum and the result

class Rewriter {
public:
  explicit Rewriter(std::vector<uint32_t> words) : in_(std::move(words)) {}

  StatusOr<std::vector<uint32_t>> run() {
    if (!learn())
      return std::move(in_);
    if (int_type_ == 0)
      return internal_error("a shader on cooperative matrices has no 32-bit number");
    for (const auto& [type, use] : use_)
      if (use == kUses)
        return internal_error("a shader uses one type of cooperative matrix for several operands");
    first_use_ = in_[kBoundWord];
    out_.assign(in_.begin(), in_.begin() + kHeaderWords);
    out_[kBoundWord] = first_use_ + kUses;
    each([&](std::span<const uint32_t> op) { put(op); });
    return std::move(out_);
  }

private:
  template <class Use>
  void each(Use use) const {
    for (size_t at = kHeaderWords; at < in_.size() && in_[at] >> 16 != 0; at += in_[at] >> 16)
      use(std::span(in_).subspan(at, in_[at] >> 16));
  }

  /// What ids are; false when there is nothing to do.
  bool learn() {
    bool any = false;
    std::map<uint32_t, uint32_t> type_of; // of results
    each([&](std::span<const uint32_t> op) {
      switch (op[0] & 0xffff) {
      case kCapability:
        any = any || op[1] == kCapabilityNv;
        break;
      case kTypeInt:
        if (op[2] == 32 && int_type_ == 0)
          int_type_ = op[1];
        if (op[3] != 0)
          signed_.insert(op[1]);
        break;
      case kConstantTrue:
        columns_[op[2]] = true;
        break;
      case kConstantFalse:
        columns_[op[2]] = false;
        break;
      default:
        // Results with a type of matrices: the type stands first in all that makes one.
        if (op.size() > 2 && types_.contains(op[1]))
          type_of[op[2]] = op[1];
        if ((op[0] & 0xffff) == kTypeNv)
          types_[op[1]] = signed_.contains(op[2]);
        if ((op[0] & 0xffff) == kMulAddNv)
          for (uint32_t use = 0; use < kUses; ++use)
            if (const auto found = type_of.find(op[3 + use]); found != type_of.end())
              if (const auto [at, first] = use_.try_emplace(found->second, use); !first && at->second != use)
                at->second = kUses;
      }
    });
    return any;
  }

  void put(std::span<const uint32_t> op) {
    switch (op[0] & 0xffff) {
    case kCapability:
      return add(kCapability, {op[1] == kCapabilityNv ? kCapabilityKhr : op[1]});
    case kExtension:
      if (std::string_view(reinterpret_cast<const char*>(op.data() + 1)) == kNameNv) {
        std::vector<uint32_t> name(kNameKhr.size() / 4 + 1);
        std::memcpy(name.data(), kNameKhr.data(), kNameKhr.size());
        return add(kExtension, name);
      }
      break;
    case kTypeInt:
      out_.insert(out_.end(), op.begin(), op.end());
      if (op[1] == int_type_) // 0, 1 and 2: uses, and the orders of rows and of columns
        for (uint32_t use = 0; use < kUses; ++use)
          add(kConstant, {int_type_, first_use_ + use, use});
      return;
    case kTypeNv: {
      std::vector<uint32_t> words(op.begin() + 1, op.end());
      const auto use = use_.find(op[1]);
      words.push_back(first_use_ + (use == use_.end() ? kUses - 1 : use->second));
      return add(kTypeKhr, words);
    }
    case kLoadNv: {
      std::vector<uint32_t> words = {op[1], op[2], op[3], order(op[5]), op[4]};
      words.insert(words.end(), op.begin() + 6, op.end());
      return add(kLoadKhr, words);
    }
    case kStoreNv: {
      std::vector<uint32_t> words = {op[1], op[2], order(op[4]), op[3]};
      words.insert(words.end(), op.begin() + 5, op.end());
      return add(kStoreKhr, words);
    }
    case kMulAddNv: {
      std::vector<uint32_t> words(op.begin() + 1, op.end());
      if (types_.at(op[1]))
        words.push_back(kAllSigned);
      return add(kMulAddKhr, words);
    }
    case kLengthNv:
      return add(kLengthKhr, {op.begin() + 1, op.end()});
    }
    out_.insert(out_.end(), op.begin(), op.end());
  }

  uint32_t order(uint32_t columns) const {
    const auto found = columns_.find(columns);
    return first_use_ + (found != columns_.end() && found->second ? 1 : 0);
  }

  void add(uint32_t opcode, const std::vector<uint32_t>& words) {
    out_.push_back(static_cast<uint32_t>(words.size() + 1) << 16 | opcode);
    out_.insert(out_.end(), words.begin(), words.end());
  }

  std::vector<uint32_t> in_, out_;
  uint32_t int_type_ = 0, first_use_ = 0;
  std::set<uint32_t> signed_; ///< types of integers
  std::map<uint32_t, bool> types_,
      columns_;                      ///< of matrices, and whether of signed integers; constants that say "in columns"
  std::map<uint32_t, uint32_t> use_; ///< of a type; kUses = of several
};

} // namespace

StatusOr<std::vector<uint32_t>> to_khr_cooperative(std::vector<uint32_t> words) {
  return Rewriter(std::move(words)).run();
}

} // namespace cortiq::codegen
