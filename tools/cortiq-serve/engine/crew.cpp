#include "tools/cortiq-serve/engine/crew.h"

#include <algorithm>
#include <system_error>

namespace cortiq::serve {

Crew::Crew(unsigned threads) {
  for (unsigned i = 1; i < threads; ++i) {
    try {
      helpers_.emplace_back([this] { help(); });
    } catch (const std::system_error&) {
      break; // the standard library reports a refused thread this way only
    }
  }
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  begun_.notify_all();
  for (std::thread& helper : helpers_)
    helper.join();
}

void Crew::run(size_t count, const std::function<void(size_t)>& work) {
  const size_t helpers = count == 0 ? 0 : std::min(helpers_.size(), count - 1);
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    count_ = count;
    next_.store(0, std::memory_order_relaxed);
    wanted_ = helpers;
  }
  for (size_t i = 0; i < helpers; ++i)
    begun_.notify_one();
  take_pieces();
  std::unique_lock lock(mutex_);
  wanted_ = 0; // who comes late has nothing to do
  done_.wait(lock, [&] { return helping_ == 0; });
  work_ = nullptr;
}

void Crew::help() {
  std::unique_lock lock(mutex_);
  while (true) {
    begun_.wait(lock, [&] { return ending_ || wanted_ != 0; });
    if (ending_)
      return;
    --wanted_;
    ++helping_;
    lock.unlock();
    take_pieces();
    lock.lock();
    if (--helping_ == 0)
      done_.notify_one();
  }
}

void Crew::take_pieces() {
  for (size_t i = next_.fetch_add(1); i < count_; i = next_.fetch_add(1))
    (*work_)(i);
}

} // namespace cortiq::serve
