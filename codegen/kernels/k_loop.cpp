#include "codegen/kernels/core.h"

namespace cortiq::codegen {

namespace {

constexpr int64_t kLine = 64;

int64_t lines_before(int64_t bytes) {
  return (bytes + kLine - 1) / kLine;
}

} // namespace

void prefetch_part(CoreContext& c, const RecordPlace& place, unsigned part, unsigned parts) {
  if (!place.ahead.base)
    return;
  // Lines are counted from the start of the iteration, so that neighbouring records share none.
  const int64_t from = place.ahead.disp + place.ahead_bytes * part / parts;
  const int64_t to = place.ahead.disp + place.ahead_bytes * (part + 1) / parts;
  for (int64_t line = lines_before(from); line < lines_before(to); ++line)
    c.e.prefetch({place.ahead.base, line * kLine});
}

std::vector<Value> k_loop(CoreContext& c, Address group, int64_t index_step, std::vector<Value> carried,
                          const std::function<std::vector<Value>(const RecordPlace&, std::vector<Value>)>& record,
                          const RowPart& part) {
  Emit& e = c.e;
  const Geometry& g = c.geometry;
  const uint64_t weights = part.weights ? part.weights : c.spec.k;
  const uint64_t full = weights / g.block; // records with all their weights
  const uint64_t rest = weights % g.block; // weights of a last, partial one
  const uint64_t iterations = full / g.unroll;
  const uint64_t left = full % g.unroll;
  // A core's record may be several stored ones (q8_row, plain floats).
  const int64_t record_bytes = int64_t(c.spec.rows) * c.format.block_bytes * (g.block / c.format.block);
  const int64_t words_stride = c.decoder.header_words_stride();

  Value at = e.offset(group.base, group.disp + int64_t(c.spec.rows) * c.format.header_bytes);
  Value words = words_stride ? e.offset(group.base, group.disp + c.decoder.header_words_offset()) : Value();
  if (part.first) {
    at = e.offset(at, part.first, int64_t(g.unroll) * record_bytes);
    if (words)
      words = e.offset(words, part.first, words_stride);
  }

  // Records ask for what lies c.ahead bytes behind them; this is what lies behind the row headers.
  for (int64_t at = 0; c.ahead > 0 && at < int64_t(c.spec.rows) * c.format.header_bytes; at += kLine)
    e.prefetch({group.base, group.disp + c.ahead + at});

  auto emit_records = [&](Value base, Value header, Value index, int64_t static_index, uint64_t count, uint64_t partial,
                          std::vector<Value> values) {
    if (header)
      c.decoder.begin_iteration({header, 0}, c.vectors);
    for (uint64_t i = 0; i < count + (partial ? 1 : 0); ++i) {
      RecordPlace place;
      place.record = {{base, int64_t(i) * record_bytes}, unsigned(i)};
      place.index = index;
      place.static_index = static_index + int64_t(i) * index_step;
      place.weights = i < count ? g.block : partial;
      place.ahead_bytes = record_bytes;
      if (c.ahead > 0)
        place.ahead = {base, int64_t(i) * record_bytes + c.ahead};
      c.decoder.begin_record(place.record, c.vectors);
      values = record(place, std::move(values));
    }
    return values;
  };

  if (iterations > 0) {
    const size_t sums = carried.size();
    carried.push_back(at);
    if (words)
      carried.push_back(words);
    const int64_t step = index_step * g.unroll;
    carried = e.loop(e.index(0), e.index(int64_t(iterations) * step), step, carried,
                     [&](Value index, const std::vector<Value>& in) {
                       std::vector<Value> values(in.begin(), in.begin() + sums);
                       Value header = words ? in[sums + 1] : Value();
                       values = emit_records(in[sums], header, index, 0, g.unroll, 0, std::move(values));
                       values.push_back(e.offset(in[sums], int64_t(g.unroll) * record_bytes));
                       if (words)
                         values.push_back(e.offset(header, words_stride));
                       return values;
                     });
    at = carried[sums];
    if (words)
      words = carried[sums + 1];
    carried.resize(sums);
  }
  if (left > 0 || rest > 0)
    carried =
        emit_records(at, words, Value(), int64_t(iterations) * index_step * g.unroll, left, rest, std::move(carried));
  return carried;
}

} // namespace cortiq::codegen
