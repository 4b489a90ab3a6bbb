#include "codegen/aarch64/reload.h"

#include "llvm/ADT/DenseMap.h"

namespace cortiq::codegen::aarch64 {
namespace {

/// Operations between two uses from which on the later one loads again.
constexpr int64_t kFar = 48;

/// A use of a load in its block: casts are seen through.
struct Use {
  int64_t at;
  mlir::OpOperand* operand;
};

class Reload {
public:
  explicit Reload(mlir::Block& block) : block_(block) {
    int64_t at = 0;
    for (mlir::Operation& op : block) {
      numbers_[&op] = at++;
      if (op.walk([](mlir::Operation* inner) {
              return llvm::isa<vec::StoreOp>(inner) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
            }).wasInterrupted())
        last_write_.push_back(at - 1);
    }
  }

  void run() {
    llvm::SmallVector<vec::LoadOp> loads(block_.getOps<vec::LoadOp>());
    for (vec::LoadOp load : loads)
      split(load);
  }

private:
  void split(vec::LoadOp load) {
    std::vector<Use> uses;
    if (!collect(load, uses))
      return;
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.at < b.at; });
    const int64_t own = numbers_.lookup(load);
    mlir::Value current = load;
    int64_t last = own;
    for (const Use& use : uses) {
      if (use.at - last > kFar && use.at > own && !written_between(own, use.at)) {
        mlir::OpBuilder builder(use.operand->getOwner());
        current = builder.clone(*load)->getResult(0);
      }
      last = use.at;
      if (current != load.getResult()) {
        mlir::OpBuilder builder(use.operand->getOwner());
        const mlir::Type type = use.operand->get().getType();
        use.operand->set(type == current.getType()
                             ? current
                             : mlir::Value(builder.create<vec::BitcastOp>(load.getLoc(), type, current)));
      }
    }
  }

  /// The uses of `value`; false when one is outside of the block.
  bool collect(mlir::Value value, std::vector<Use>& uses) {
    for (mlir::OpOperand& use : value.getUses()) {
      mlir::Operation* user = use.getOwner();
      if (user->getBlock() != &block_ || !numbers_.count(user))
        return false;
      if (llvm::isa<vec::BitcastOp>(user)) {
        if (!collect(user->getResult(0), uses))
          return false;
      } else {
        uses.push_back({numbers_.lookup(user), &use});
      }
    }
    return true;
  }

  bool written_between(int64_t from, int64_t to) const {
    const auto it = std::upper_bound(last_write_.begin(), last_write_.end(), from);
    return it != last_write_.end() && *it < to;
  }

  mlir::Block& block_;
  llvm::DenseMap<mlir::Operation*, int64_t> numbers_;
  std::vector<int64_t> last_write_; ///< numbers of the operations that write memory
};

} // namespace

void reload_far_uses(vec::KernelOp kernel) {
  Reload(kernel.getBlock()).run();
  kernel.getBody().walk([](vec::LoopOp loop) { Reload(loop.getBlock()).run(); });
}

} // namespace cortiq::codegen::aarch64
