#include "codegen/machine/parallel_moves.h"

#include <algorithm>

namespace cortiq::codegen {

void resolve_parallel_moves(std::vector<Move> moves, MoveScratch scratch, RegClass reg_class, MoveSink& sink) {
  const Place by_way_of{Place::kRegister, scratch.copy}, held{Place::kRegister, scratch.hold};
  const auto write = [&](const Move& move) {
    if (move.to.kind != Place::kRegister && move.from.kind != Place::kRegister) {
      sink.move(reg_class, by_way_of, move.from, move.bits);
      sink.move(reg_class, move.to, by_way_of, move.bits);
    } else {
      sink.move(reg_class, move.to, move.from, move.bits);
    }
  };
  std::erase_if(moves, [](const Move& move) { return move.to == move.from; });
  while (!moves.empty()) {
    // A move whose target nobody reads any more can go.
    const auto ready = std::find_if(moves.begin(), moves.end(), [&](const Move& move) {
      return std::none_of(moves.begin(), moves.end(), [&](const Move& other) { return other.from == move.to; });
    });
    if (ready != moves.end()) {
      write(*ready);
      moves.erase(ready);
      continue;
    }
    // Only cycles are left. Exchange two registers of one; around a slot, hold the old value of one move's target, for
    // whoever reads it, so that this move can go. The cycle is done before another one is looked at.
    const Move first = moves.front();
    const Place a = first.to, b = first.from;
    if (a.kind == Place::kRegister && b.kind == Place::kRegister) {
      unsigned bits = 0;
      for (const Move& move : moves)
        bits = std::max(bits, move.bits);
      sink.exchange(reg_class, a.number, b.number, bits);
      moves.erase(moves.begin());
      for (Move& move : moves)
        move.from = move.from == a ? b : move.from;
      std::erase_if(moves, [](const Move& move) { return move.to == move.from; });
    } else {
      sink.move(reg_class, held, a, first.bits);
      for (Move& move : moves)
        if (move.from == a)
          move.from = held;
    }
  }
}

} // namespace cortiq::codegen
