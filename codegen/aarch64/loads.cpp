// Loads: whole vectors in pairs, parts of vectors, and values that all lanes share.

#include "codegen/aarch64/selector.h"

namespace cortiq::codegen::aarch64 {
namespace {

constexpr int64_t kVectorBytes = kVectorBits / 8;

bool writes_memory(mlir::Operation& op) {
  return op
      .walk([](mlir::Operation* inner) {
        return llvm::isa<vec::StoreOp>(inner) ? mlir::WalkResult::interrupt() : mlir::WalkResult::advance();
      })
      .wasInterrupted();
}

/// A pointer as the value it starts from and a constant distance.
std::pair<mlir::Value, int64_t> root_and_distance(mlir::Value ptr, int64_t offset) {
  while (auto add = ptr.getDefiningOp<vec::PtrAddOp>()) {
    offset += static_cast<int64_t>(add.getOffset());
    ptr = add.getPtr();
  }
  return {ptr, offset};
}

template <class Op>
std::pair<mlir::Value, int64_t> place_of(Op load) {
  return root_and_distance(load.getPtr(), static_cast<int64_t>(load.getOffset()));
}

bool is_whole(vec::LoadOp load) {
  return !load.getLanes() || *load.getLanes() == static_cast<uint64_t>(load.getType().getNumElements());
}

/// Calls `see` with the ops behind `from` in its block, until it returns false or one writes memory.
template <class See>
void look_ahead(mlir::Operation* from, See see) {
  for (mlir::Operation* op = from->getNextNode(); op && !writes_memory(*op); op = op->getNextNode())
    if (!see(op))
      return;
}

/// Whether every use of a shared value takes it as one lane.
bool all_uses_take_lanes(mlir::Value value, bool dot_by_lane) {
  for (mlir::OpOperand& use : value.getUses()) {
    mlir::Operation* user = use.getOwner();
    const unsigned operand = use.getOperandNumber();
    const auto is_shared = [](mlir::Value other) {
      return strip_bitcasts(other).getDefiningOp<vec::LoadSplatOp>() != nullptr;
    };
    if (llvm::isa<vec::BitcastOp>(user)) {
      if (!all_uses_take_lanes(user->getResult(0), dot_by_lane))
        return false;
    } else if (llvm::isa<vec::Dot4Op, vec::SignedDot4Op>(user)) {
      if (!dot_by_lane || operand != 2)
        return false;
    } else if (llvm::isa<vec::MulOp>(user) && lane_name(user->getResult(0)) == "f32") {
      if (is_shared(user->getOperand(1 - operand)))
        return false;
    } else if (llvm::isa<vec::FmaOp>(user)) {
      if (operand == 2 || is_shared(user->getOperand(1 - operand)))
        return false;
    } else {
      return false;
    }
  }
  return true;
}

} // namespace

void Selector::select_whole_load(vec::LoadOp load) {
  const unsigned bits = bits_of(load);
  regs_[load] = add({.rules = named_row("load"),
                     .bits = bits,
                     .def = new_vector(),
                     .mem = memory(load.getPtr(), static_cast<int64_t>(load.getOffset()), bits)});
}

void Selector::select_load(vec::LoadOp load) {
  if (regs_.count(load))
    return; // came with its neighbour
  if (!is_whole(load)) {
    const unsigned lane_bytes = load.getType().getElementTypeBitWidth() / 8;
    regs_[load] = load_bytes(load.getPtr(), static_cast<int64_t>(load.getOffset()),
                             static_cast<unsigned>(*load.getLanes()) * lane_bytes);
    return;
  }
  select_whole_load(load);
  // The neighbour, when it comes soon: far ahead it would only hold a register.
  constexpr unsigned kReach = 12;
  const unsigned bits = bits_of(load);
  if (bits < 64)
    return;
  const auto [root, at] = place_of(load);
  unsigned seen = 0;
  look_ahead(load, [&](mlir::Operation* op) {
    auto other = llvm::dyn_cast<vec::LoadOp>(op);
    if (other && !regs_.count(other) && !other->use_empty() && is_whole(other) && bits_of(other) == bits) {
      const auto [other_root, other_at] = place_of(other);
      if (other_root == root && other_at == at + bits / 8) {
        select_whole_load(other);
        return false;
      }
    }
    return ++seen < kReach;
  });
}

VReg Selector::load_bytes(mlir::Value ptr, int64_t offset, unsigned bytes) {
  // The largest power of two first, the others inserted behind it.
  VReg value = kNoReg;
  unsigned done = 0;
  for (const auto& [piece, name] :
       {std::pair{16u, "load"}, {8u, "insert_d"}, {4u, "insert_s"}, {2u, "insert_h"}, {1u, "insert_b"}}) {
    if (bytes - done < piece)
      continue;
    const VReg next = new_vector();
    const int64_t at = offset + static_cast<int64_t>(done);
    if (value == kNoReg)
      add({.rules = named_row("load"), .bits = 8 * piece, .def = next, .mem = memory(ptr, at, 8 * piece)});
    else
      add({.rules = named_row(name), .def = next, .uses = {value}, .imm = done / piece, .mem = exact_memory(ptr, at)});
    value = next;
    done += piece;
  }
  return value;
}

void Selector::select_load_splat(vec::LoadSplatOp load) {
  const int64_t offset = static_cast<int64_t>(load.getOffset());
  const unsigned lane_bits = load.getType().getElementTypeBitWidth();
  if (lane_bits < 32) {
    regs_[load] = add({.rules = named_row(lane_bits == 8 ? "load_splat8" : "load_splat16"),
                       .def = new_vector(),
                       .mem = exact_memory(load.getPtr(), offset)});
    return;
  }
  if (!lanes_.count(load)) {
    // Neighbours to come: a load of a whole vector where all four are wanted, of half where the first two are.
    const auto [root, at] = place_of(load);
    vec::LoadSplatOp neighbours[4] = {load};
    constexpr unsigned kReach = 400;
    unsigned seen = 0;
    look_ahead(load, [&](mlir::Operation* op) {
      if (auto other = llvm::dyn_cast<vec::LoadSplatOp>(op); other &&
                                                             other.getType().getElementTypeBitWidth() == lane_bits &&
                                                             !lanes_.count(other) && !other->use_empty()) {
        const auto [other_root, other_at] = place_of(other);
        const int64_t distance = other_at - at;
        if (other_root == root && distance > 0 && distance < kVectorBytes && distance % 4 == 0)
          neighbours[distance / 4] = other;
      }
      return ++seen < kReach;
    });
    int64_t wanted = 1;
    if (neighbours[1])
      wanted = neighbours[2] && neighbours[3] ? 4 : 2;
    const unsigned bits = 32 * static_cast<unsigned>(wanted);
    const VReg held = add(
        {.rules = named_row("load"), .bits = bits, .def = new_vector(), .mem = memory(load.getPtr(), offset, bits)});
    for (int64_t i = 0; i < wanted; ++i)
      lanes_[neighbours[i]] = {held, i};
  }
  if (!all_uses_take_lanes(load, features_.dotprod)) {
    const Lane lane = lanes_[load];
    regs_[load] = add_named("dup32", {lane.reg}, lane.number);
  }
}

std::optional<Selector::Lane> Selector::lane_of(mlir::Value value) {
  value = strip_bitcasts(value);
  const auto it = lanes_.find(value);
  if (it == lanes_.end() || regs_.count(value))
    return std::nullopt;
  return it->second;
}

} // namespace cortiq::codegen::aarch64
