#include "tools/cortiq-serve/http/pieces.h"

#include <algorithm>

namespace cortiq::serve {
namespace {

using namespace std::chrono_literals;

/// Of several jobs only one can be waited for; how long before the others are looked at again.
constexpr std::chrono::milliseconds kTurn = 4ms;

} // namespace

bool Pieces::wait(std::chrono::milliseconds patience, News& news) {
  const auto running = static_cast<size_t>(
      std::count_if(finishes_.begin(), finishes_.end(), [](const auto& finish) { return !finish; }));
  const auto until = Job::Clock::now() + patience;
  do {
    bool some = false, waited = false;
    for (size_t i = 0; i < jobs_.size(); ++i)
      if (!finishes_[i]) {
        const bool wait_here = !std::exchange(waited, true) && !some;
        some = take(i, wait_here ? (running == 1 ? patience : kTurn) : 0ms, news) || some;
      }
    if (some)
      return true;
  } while (running > 1 && Job::Clock::now() < until);
  return false;
}

bool Pieces::take(size_t number, std::chrono::milliseconds patience, News& news) {
  std::vector<Piece> pieces;
  if (!jobs_[number]->wait(patience, pieces))
    return false;
  for (Piece& piece : pieces)
    news.pieces.emplace_back(number, std::move(piece));
  if (const std::optional<Finish> finish = jobs_[number]->finished()) {
    finishes_[number] = finish;
    news.finishes.emplace_back(number, *finish);
  }
  return true;
}

bool Pieces::ended() const {
  return std::all_of(finishes_.begin(), finishes_.end(), [](const auto& finish) { return finish.has_value(); });
}

std::vector<Finish> Pieces::finishes() const {
  std::vector<Finish> out;
  for (const auto& finish : finishes_)
    out.push_back(*finish);
  return out;
}

void Pieces::cancel() {
  for (size_t i = 0; i < jobs_.size(); ++i)
    if (!finishes_[i])
      jobs_[i]->cancel();
}

} // namespace cortiq::serve
