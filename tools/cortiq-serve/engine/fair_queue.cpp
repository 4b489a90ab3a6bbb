#include "tools/cortiq-serve/engine/fair_queue.h"

#include <algorithm>

namespace cortiq::serve {

void FairQueue::push(std::shared_ptr<Job> job) {
  const std::string& client = job->request.client;
  auto line = std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.client == client; });
  if (line == lines_.end())
    line = lines_.insert(lines_.end(), Line{client, {}});
  line->jobs.push_back(std::move(job));
  ++size_;
}

std::shared_ptr<Job> FairQueue::pop() {
  if (lines_.empty())
    return nullptr;
  Line& line = lines_.front();
  std::shared_ptr<Job> job = std::move(line.jobs.front());
  line.jobs.pop_front();
  --size_;
  if (line.jobs.empty())
    lines_.pop_front();
  else
    lines_.splice(lines_.end(), lines_, lines_.begin());
  return job;
}

std::deque<std::shared_ptr<Job>> FairQueue::take_cancelled() {
  std::deque<std::shared_ptr<Job>> out;
  for (auto line = lines_.begin(); line != lines_.end();) {
    std::erase_if(line->jobs, [&](std::shared_ptr<Job>& job) {
      if (!job->cancelled())
        return false;
      out.push_back(job);
      return true;
    });
    line = line->jobs.empty() ? lines_.erase(line) : std::next(line);
  }
  size_ -= out.size();
  return out;
}

} // namespace cortiq::serve
