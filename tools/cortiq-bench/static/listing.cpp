#include "tools/cortiq-bench/static/listing.h"

#include <charconv>
#include <cstddef>
#include <optional>

#include "formats/artifact/kernel_abi.h"
#include "formats/quote.h"

namespace cortiq::bench {
namespace {

constexpr std::string_view kLoop = "; loop ", kEndOfLoop = "; end of loop ";

/// Takes a number off the front of `text`.
std::optional<uint64_t> take_number(std::string_view& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc())
    return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word))
    return false;
  text.remove_prefix(word.size());
  return true;
}

/// Reads codec, layout and sizes out of a name; whether it follows the grammar.
bool read_name(ListedKernel& kernel) {
  for (const formats::Codec& codec : formats::codec_table())
    for (const auto& [word, layout] :
         {std::pair{"r16", formats::LayoutId::kR16}, {"verbatim", formats::LayoutId::kVerbatim}}) {
      const std::string part = "_" + std::string(codec.name) + "_" + word + "_k";
      const size_t at = kernel.name.find(part);
      if (at == std::string::npos)
        continue;
      std::string_view rest = std::string_view(kernel.name).substr(at + part.size());
      const auto columns = take_number(rest);
      if (!columns || !take(rest, "_"))
        continue;
      const auto tokens = take_number(rest);
      if (!tokens || !take(rest, "x"))
        continue;
      const auto rows = take_number(rest);
      if (!rows || *rows == 0 || *tokens == 0 || *columns == 0)
        continue;
      kernel.codec = &codec;
      kernel.layout = layout;
      kernel.columns = *columns;
      kernel.tokens = *tokens;
      kernel.rows = *rows;
      kernel.set = kernel.name.substr(kernel.name.rfind('_') + 1);
      return true;
    }
  return false;
}

/// The text of an instruction: behind place and bytes, blanks for tabs.
std::string instruction_of(std::string_view line) {
  std::string out;
  for (const char c : line.substr(line.find('\t') + 1))
    out += c == '\t' ? ' ' : c;
  return out;
}

class Reader {
public:
  Status read(std::string_view line) {
    if (line.empty())
      return {};
    if (line.ends_with(':') && line.find_first_of(" \t") == std::string_view::npos) {
      open_.clear();
      kernels_.emplace_back().name = line.substr(0, line.size() - 1);
      return {};
    }
    if (kernels_.empty())
      return bad(line);
    ListedKernel& kernel = kernels_.back();
    if (line.starts_with(kLoop))
      return begin_loop(kernel, line);
    if (line.starts_with(kEndOfLoop))
      return end_loop(kernel, line);
    if (line.find(": constants ") != std::string_view::npos)
      return {};
    if (line.find('\t') == std::string_view::npos)
      return bad(line);
    kernel.instructions.push_back(instruction_of(line));
    return {};
  }

  StatusOr<std::vector<ListedKernel>> finish() {
    std::vector<ListedKernel> out;
    for (ListedKernel& kernel : kernels_)
      if (read_name(kernel))
        out.push_back(std::move(kernel));
    return out;
  }

private:
  static Status bad(std::string_view line) {
    return invalid("the listing of cortiq-compile has a line that is none: " + formats::quote(line));
  }

  Status begin_loop(ListedKernel& kernel, std::string_view line) {
    std::string_view rest = line.substr(kLoop.size());
    ListedLoop loop;
    loop.begin = kernel.instructions.size();
    loop.parent = open_.empty() ? -1 : static_cast<int>(open_.back());
    const auto number = take_number(rest);
    if (!number || *number != kernel.loops.size() || !take(rest, ": "))
      return bad(line);
    if (take(rest, "to args[")) {
      const auto field = take_number(rest);
      if (!field || !take(rest, "], "))
        return bad(line);
      loop.limit = *field == offsetof(formats::KernelArgs, groups)   ? LoopLimit::kGroups
                   : *field == offsetof(formats::KernelArgs, tokens) ? LoopLimit::kTokens
                                                                     : LoopLimit::kOther;
    } else if (!rest.starts_with("step")) {
      const auto times = take_number(rest);
      if (!times || !take(rest, " times, "))
        return bad(line);
      loop.limit = LoopLimit::kIterations;
      loop.iterations = *times;
    }
    const auto step = take(rest, "step ") ? take_number(rest) : std::nullopt;
    if (!step || *step == 0)
      return bad(line);
    loop.step = *step;
    open_.push_back(kernel.loops.size());
    kernel.loops.push_back(loop);
    return {};
  }

  Status end_loop(ListedKernel& kernel, std::string_view line) {
    std::string_view rest = line.substr(kEndOfLoop.size());
    const auto number = take_number(rest);
    if (!number || open_.empty() || open_.back() != *number)
      return bad(line);
    kernel.loops[open_.back()].end = kernel.instructions.size();
    open_.pop_back();
    return {};
  }

  std::vector<ListedKernel> kernels_;
  std::vector<size_t> open_; ///< of the last kernel's loops
};

} // namespace

StatusOr<std::vector<ListedKernel>> parse_listing(std::string_view text) {
  Reader reader;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    CORTIQ_RETURN_IF_ERROR(reader.read(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.finish();
}

} // namespace cortiq::bench
