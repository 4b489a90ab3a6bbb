#pragma once

// Where the time of a session's steps went, for people and for tools.

#include <cstdint>
#include <string>
#include <vector>

namespace cortiq::runtime {

class Profiler; // runtime/executor

struct Profile {
  /// All calls of one kernel, or small operation, and shape.
  struct Row {
    std::string name; ///< kernel symbol or op name
    uint64_t rows = 0, cols = 0;
    uint64_t calls = 0;      ///< times that it ran
    double seconds = 0;      ///< of wall clock: its share of its stages'
    double busy_seconds = 0; ///< added over threads
    double bytes = 0;        ///< of weights and cache, read once a call
    double operations = 0;   ///< of matrix work; a multiplication and its addition are two
    double gbps() const { return seconds > 0 ? bytes * 1e-9 / seconds : 0; }
    double tops() const { return seconds > 0 ? operations * 1e-12 / seconds : 0; }
  };
  /// One block of a call's items on one thread.
  struct Event {
    uint32_t row;    ///< of rows
    uint32_t thread; ///< 0: the caller's
    double start, seconds;
  };
  std::vector<Row> rows; ///< slowest first
  std::vector<Event> events;
  unsigned threads = 1;
  uint64_t steps = 0;
  // Seconds of wall clock; step = work + waiting + alone + setup.
  double step = 0;    ///< all of the steps
  double work = 0;    ///< threads at work, as if they were balanced: busy time over their number
  double waiting = 0; ///< for barriers, for the slowest item of a stage, for items to be handed out
  double alone = 0;   ///< one thread at work, the others waiting for it because the operation has a single item
  double setup = 0;   ///< before the first stage
  double bytes = 0;
  double overhead() const { return step - work; }
};

Profile make_profile(const Profiler* profiler, unsigned threads);

/// One line a row: name, shape, calls, bytes, time, GB/s, and the share of `machine_gbps` when that is not 0; then one
/// line on the time outside of all operations.
std::vector<std::string> describe(const Profile& profile, double machine_gbps);

/// The rows added up by kind, slowest first: products by the codec of their weights, everything else by name.
std::vector<Profile::Row> sum_kinds(const Profile& profile);

/// A line on the steps, one a kind (time, share of the steps, bytes, GB/s), and one on the time that threads waited.
/// Empty without steps.
std::vector<std::string> summarize(const Profile& profile);

} // namespace cortiq::runtime
