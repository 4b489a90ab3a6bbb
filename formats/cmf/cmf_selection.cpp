#include "formats/checked_math.h"
#include "formats/cmf/cmf_extensions.h"
#include "formats/cmf/json_fields.h"

namespace cortiq::formats {
namespace {

/// Bytes behind a base64 text with padding; nothing where it is none.
std::optional<uint64_t> base64_bytes(std::string_view text) {
  if (text.size() % 4 != 0)
    return std::nullopt;
  uint64_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=')
    ++padding;
  for (const char c : text.substr(0, text.size() - padding)) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    if (!letter && !(c >= '0' && c <= '9') && c != '+' && c != '/')
      return std::nullopt;
  }
  return text.size() / 4 * 3 - padding;
}

} // namespace

StatusOr<CmfSelection> check_cmf_selection(const Json& json, const std::string& where, uint32_t hidden_size) {
  constexpr uint64_t kHalf = 2;
  CmfSelection out;
  std::string mean, basis;
  std::optional<float> err_mean, err_std;
  uint32_t rank = 0;
  JsonFields f(json, where);
  f.required("metric", out.metric);
  f.required("phi_layer", out.phi_layer);
  f.required("mean", mean);
  f.required("basis", basis);
  f.required("rank", rank);
  f.optional("err_mean", err_mean);
  f.optional("err_std", err_std);
  CORTIQ_RETURN_IF_ERROR(f.status());
  if (out.metric != "mse" && out.metric != "mse_unit")
    return invalid(where + ".metric is " + quote(out.metric) + ", expected mse or mse_unit");
  if (base64_bytes(mean) != hidden_size * kHalf)
    return invalid(where + ".mean is not the base64 form of " + std::to_string(hidden_size) + " f16 values");
  if (base64_bytes(basis) != checked_mul(hidden_size * kHalf, rank))
    return invalid(where + ".basis is not the base64 form of " + std::to_string(rank) + " x " +
                   std::to_string(hidden_size) + " f16 values");
  return out;
}

} // namespace cortiq::formats
