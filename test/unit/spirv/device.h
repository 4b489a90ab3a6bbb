#pragma once

// The Vulkan device that shader tests run on: whatever the loader lists first, lavapipe where there is no other.

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cortiq::codegen {

/// The bindings of shaders/common/bindings.glsl.
enum Binding : uint32_t { kWeights = 0, kArena = 1, kVectors = 2, kCache = 3, kStep = 4, kResults = 5, kBindings = 6 };

/// An array of segments follows; segment s is buffer kFirstSegment + s.
inline constexpr uint32_t kSegments = 16, kFirstSegment = kBindings;

using Words = std::vector<uint32_t>;

struct Grid {
  uint32_t x = 1, y = 1, z = 1;
};

/// What one dispatch reads and writes; buffers that are left empty get 64 bytes.
struct Dispatch {
  Words module;
  Grid grid;
  std::vector<uint32_t> push;
  std::map<uint32_t, Words> buffers;
};

class Device {
public:
  /// The device of this process, or null where there is none; `why` then says it.
  static Device* get(std::string& why);

  /// Runs a dispatch and brings the buffers' contents back; false when the driver refuses something.
  bool run(Dispatch& dispatch, std::string& why);

  const std::string& name() const;
  uint32_t subgroup_size() const;
  /// Whether it is held to results below 2^-126: Vulkan lets devices make zeros of them, and GPUs do.
  bool keeps_subnormals() const;
  /// Packed 4 x 8 bit dot products can be used.
  bool integer_dot() const;

  struct State;

private:
  explicit Device(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// A test on the device; skipped, saying why, where there is none.
class ShaderTest : public ::testing::Test {
protected:
  void SetUp() override {
    std::string why;
    device = Device::get(why);
    if (!device)
      GTEST_SKIP() << why;
  }
  /// Specialises and runs; a refusal fails the test.
  void run(std::string_view name, const std::vector<std::pair<uint32_t, uint32_t>>& constants, Dispatch& dispatch);

  Device* device = nullptr;
};

} // namespace cortiq::codegen
