#include "tools/cortiq-serve/openai/tool_calls/reader.h"

#include <algorithm>

namespace cortiq::serve {
namespace {

constexpr size_t npos = std::string::npos;

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \r\n\t") == npos;
}

} // namespace

CallReader::Out CallReader::push(std::string_view piece) {
  held_ += piece;
  Out out;
  read(false, out);
  return out;
}

CallReader::Out CallReader::finish() {
  Out out;
  read(true, out);
  return out;
}

void CallReader::read(bool whole, Out& out) {
  while (!held_.empty()) {
    size_t certain = 0;
    const size_t opener = find_opener(certain);
    if (opener == npos) {
      if (whole && !said_ && calls_ == 0)
        out.text += held_;
      else
        say(std::string_view(held_).substr(0, whole ? held_.size() : certain), out);
      held_.erase(0, whole ? held_.size() : certain);
      return;
    }
    say(std::string_view(held_).substr(0, opener), out);
    held_.erase(0, opener);
    ReadCalls found = format_.read(held_, whole, functions_);
    if (found.taken == 0) {
      if (whole) {
        say(held_, out);
        held_.clear();
      }
      return;
    }
    for (ToolCall& call : found.calls)
      if (several_ || calls_ == 0) {
        out.calls.push_back(std::move(call));
        ++calls_;
      }
    held_.erase(0, found.taken);
  }
}

/// Where a call begins. npos: nowhere; `certain` is then how much of the text cannot belong to one.
size_t CallReader::find_opener(size_t& certain) const {
  const size_t blanks = std::min(held_.find_first_not_of(" \r\n\t"), held_.size());
  if (format_.at_start && said_) {
    certain = held_.size();
    return npos;
  }
  size_t found = npos;
  certain = held_.size();
  for (const std::string_view opener : format_.openers) {
    const size_t at = held_.find(opener);
    if (at != npos && (!format_.at_start || at == blanks))
      found = std::min(found, at);
    for (size_t start = held_.size() - std::min(held_.size(), opener.size() - 1); start < certain; ++start)
      if (opener.starts_with(std::string_view(held_).substr(start)) && (!format_.at_start || start == blanks))
        certain = start;
  }
  if (!said_ && certain == blanks)
    certain = 0; // blanks before a call are no text
  if (blanks == held_.size() && !said_)
    certain = 0;
  return found;
}

void CallReader::say(std::string_view text, Out& out) {
  // Blanks before, between and behind calls are how they are set, not text.
  if (text.empty() || (is_blank(text) && (!said_ || calls_ != 0)))
    return;
  said_ = true;
  out.text += text;
}

} // namespace cortiq::serve
