#include "tools/cortiq-bench/machine/unit.h"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/cpu/bound_threads.h"
#include "runtime/cpu/features.h"

namespace cortiq::bench {
namespace {

constexpr const Unit* kUnits[] = {
    &kPlainF32,
#if defined(__x86_64__)
    &kAvx2F32,  &kAvx512F32, &kAvx2Int8, &kAvxVnniInt8, &kAvx512VnniInt8, &kAvx512Bf16, &kAmxInt8, &kAmxBf16,
#endif
};

constexpr double kTimingSeconds = 0.05;
constexpr int kTimings = 5;

/// Tile registers are large: Linux gives them to processes that ask (arch_prctl, ARCH_REQ_XCOMP_PERM).
bool tiles_permitted() {
#if defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

bool usable(const Unit& unit, const runtime::CpuState& cpu) {
  for (const std::string_view feature : unit.features) {
    if (feature.empty())
      continue;
    if (runtime::feature_state(feature, cpu) != runtime::FeatureState::kUsable)
      return false;
    if (feature == "amx_tile" && !tiles_permitted())
      return false;
  }
  return true;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace

std::vector<const Unit*> usable_units() {
  const runtime::CpuState cpu = runtime::read_cpu_state();
  std::vector<const Unit*> out;
  for (const Unit* unit : kUnits)
    if (usable(*unit, cpu))
      out.push_back(unit);
  return out;
}

std::vector<std::string_view> missing_units() {
  const runtime::CpuState cpu = runtime::read_cpu_state();
  std::vector<std::string_view> out;
  for (const Unit* unit : kUnits)
    if (!usable(*unit, cpu))
      out.push_back(unit->name);
  return out;
}

double measure_peak(const Unit& unit, unsigned threads) {
  std::atomic<uint64_t> sink{0};
  uint64_t rounds = 1000;
  for (double seconds = 0; seconds < kTimingSeconds / 4; rounds *= 2) {
    const double start = now();
    sink.fetch_xor(unit.run(rounds));
    seconds = now() - start;
  }
  rounds *= 2;
  std::vector<double> begin(threads), end(threads);
  double best = 0;
  std::barrier start(threads);
  const bool ran = runtime::run_bound(threads, [&](unsigned index) {
    for (int i = 0; i < kTimings; ++i) {
      start.arrive_and_wait();
      begin[index] = now();
      sink.fetch_xor(unit.run(rounds));
      end[index] = now();
      start.arrive_and_wait();
      if (index != 0)
        continue;
      const double seconds = *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
      best = std::max(best, static_cast<double>(threads * rounds * unit.operations) * 1e-12 / seconds);
    }
  });
  return ran ? best : 0;
}

} // namespace cortiq::bench
