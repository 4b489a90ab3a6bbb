#include "codegen/machine/parallel_moves.h"

#include <gtest/gtest.h>
#include <map>
#include <random>

namespace cortiq::codegen {
namespace {

/// A machine of places that only moves.
struct Machine : MoveSink {
  std::map<std::pair<int, int>, int> values; // by kind and number

  static std::pair<int, int> key(const Place& place) { return {place.kind, place.number}; }
  void move(RegClass, const Place& to, const Place& from, unsigned) override {
    EXPECT_TRUE(to.kind == Place::kRegister || from.kind == Place::kRegister) << "a move between two memory places";
    values[key(to)] = values[key(from)];
  }
  void exchange(RegClass, int a, int b, unsigned) override {
    std::swap(values[{Place::kRegister, a}], values[{Place::kRegister, b}]);
  }
};

TEST(ParallelMoves, AnyMappingOfRegistersAndSlots) {
  std::mt19937 random(1);
  for (int round = 0; round < 20000; ++round) {
    std::vector<Place> places;
    for (int i = 0; i < 6; ++i) {
      places.push_back({Place::kRegister, i});
      places.push_back({Place::kSlot, i});
    }
    std::vector<Place> targets = places, sources = places;
    sources.push_back({Place::kConstant, 0});
    std::shuffle(targets.begin(), targets.end(), random);
    targets.resize(1 + random() % 8);
    Machine machine;
    for (size_t i = 0; i < sources.size(); ++i)
      machine.values[Machine::key(sources[i])] = static_cast<int>(i) + 1;
    std::vector<Move> moves;
    std::map<std::pair<int, int>, int> expected;
    for (const Place& target : targets) {
      const Place& source = sources[random() % sources.size()];
      moves.push_back({target, source, 256});
      expected[Machine::key(target)] = machine.values[Machine::key(source)];
    }
    resolve_parallel_moves(moves, {.copy = 100, .hold = 101}, RegClass::kVector, machine);
    for (const auto& [place, value] : expected)
      ASSERT_EQ(machine.values[place], value) << "round " << round;
  }
}

} // namespace
} // namespace cortiq::codegen
