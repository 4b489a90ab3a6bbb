#include "runtime/cpu/bound_threads.h"

#include <atomic>
#include <sched.h>
#include <system_error>
#include <thread>
#include <vector>

namespace cortiq::runtime {
namespace {

std::vector<unsigned> processors() {
  std::vector<unsigned> out;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (unsigned i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set))
        out.push_back(i);
  return out;
}

/// Binding may fail: the measurement is then one of threads that move.
void bind(unsigned processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  sched_setaffinity(0, sizeof(set), &set);
}

} // namespace

bool run_bound(unsigned threads, const std::function<void(unsigned)>& work) {
  const std::vector<unsigned> cpus = processors();
  enum : int { kWait, kGo, kStop };
  std::atomic<int> signal{kWait};
  std::vector<std::thread> all;
  bool refused = false;
  for (unsigned i = 0; i < threads && !refused; ++i) {
    try {
      all.emplace_back([&, i] {
        signal.wait(kWait);
        if (signal.load() != kGo)
          return;
        if (!cpus.empty())
          bind(cpus[i % cpus.size()]);
        work(i);
      });
    } catch (const std::system_error&) {
      refused = true; // the standard library reports a refused thread this way only
    }
  }
  signal.store(refused ? kStop : kGo);
  signal.notify_all();
  for (std::thread& thread : all)
    thread.join();
  return !refused;
}

} // namespace cortiq::runtime
