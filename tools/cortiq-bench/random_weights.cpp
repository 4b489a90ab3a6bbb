#include "tools/cortiq-bench/random_weights.h"

#include <charconv>
#include <vector>

#include "formats/atomic_file.h"
#include "formats/checked_math.h"
#include "formats/layout/layout.h"
#include "formats/quote.h"

namespace cortiq::bench {
namespace {

constexpr uint64_t kMostWeights = uint64_t{1} << 34;

} // namespace

StatusOr<std::pair<uint64_t, uint64_t>> parse_shape(const std::string& shape) {
  uint64_t rows = 0, cols = 0;
  const char* end = shape.data() + shape.size();
  const auto first = std::from_chars(shape.data(), end, rows);
  if (first.ptr == end || *first.ptr != 'x' || std::from_chars(first.ptr + 1, end, cols).ptr != end || rows == 0 ||
      cols == 0)
    return invalid("--shape is ROWSxCOLS, not " + formats::quote(shape));
  if (formats::checked_mul(rows, cols).value_or(UINT64_MAX) > kMostWeights)
    return invalid("--shape " + shape + " is more than the 2^34 weights that are made up for a measurement");
  return std::pair{rows, cols};
}

Status write_random_weights(const std::string& option, const std::string& codec_name, const std::string& shape_text,
                            const std::string& path) {
  CORTIQ_ASSIGN_OR_RETURN(const auto shape, parse_shape(shape_text));
  const formats::Codec* codec = formats::find_cli_codec(codec_name);
  if (!codec || codec->form == formats::DotForm::kNone)
    return invalid("there is no weight codec " + formats::quote(codec_name) + "; cortiq-inspect --codecs lists them");
  const std::string what = option + " " + codec_name + " --shape " + shape_text;
  const StatusOr<uint64_t> bytes =
      formats::packed_bytes(*codec, formats::LayoutId::kVerbatim, shape.first, shape.second);
  if (!bytes.ok())
    return bytes.status().with_prefix(what);
  std::vector<uint8_t> payload(*bytes);
  CORTIQ_RETURN_IF_ERROR(
      formats::fill_random(*codec, formats::LayoutId::kVerbatim, shape.first, shape.second, 1, payload)
          .with_prefix(what));
  return formats::write_file(path, payload);
}

} // namespace cortiq::bench
