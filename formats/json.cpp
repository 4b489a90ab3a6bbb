#include "formats/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "formats/quote.h"

namespace cortiq::formats {
namespace {

constexpr size_t kLongestText = size_t{1} << 30;
constexpr size_t kDeepest = 128;

/// Walks the text once without building anything, and remembers the first thing wrong with it.
class Checker : public nlohmann::json_sax<Json> {
public:
  const std::string& fault() const { return fault_; }

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return depth_is_fine();
  }
  bool start_array(std::size_t) override {
    keys_.emplace_back();
    return depth_is_fine();
  }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }
  bool key(string_t& name) override {
    if (keys_.back().insert(name).second)
      return true;
    fault_ = "names the key " + quote(name) + " twice in one object";
    return false;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fault_ = "is not valid JSON at byte " + std::to_string(position);
    return false;
  }

private:
  bool depth_is_fine() {
    if (keys_.size() <= kDeepest)
      return true;
    fault_ = "nests deeper than " + std::to_string(kDeepest) + " levels";
    return false;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::vector<std::set<std::string>> keys_;
  std::string fault_;
};

} // namespace

StatusOr<Json> parse_json(std::string_view text, const std::string& what) {
  if (text.size() > kLongestText)
    return invalid(what + " has " + std::to_string(text.size()) + " bytes, more than the permitted " +
                   std::to_string(kLongestText));
  Checker checker;
  if (!Json::sax_parse(text, &checker))
    return invalid(what + " " + checker.fault());
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (value.is_discarded())
    return invalid(what + " is not valid JSON");
  return value;
}

} // namespace cortiq::formats
