#include "codegen/kernels/core.h"

namespace cortiq::codegen {

std::vector<Value> k_loop(CoreContext& c, Address group, int64_t index_step, std::vector<Value> carried,
                          const std::function<std::vector<Value>(const RecordPlace&, std::vector<Value>)>& record) {
  Emit& e = c.e;
  const Geometry& g = c.geometry;
  const uint64_t full = c.spec.k / g.block; // records with all their weights
  const uint64_t rest = c.spec.k % g.block; // weights of a last, partial one
  const uint64_t iterations = full / g.unroll;
  const uint64_t left = full % g.unroll;
  // A core's record may be several stored ones (q8_row, plain floats).
  const int64_t record_bytes = int64_t(c.spec.rows) * c.format.block_bytes * (g.block / c.format.block);
  const int64_t words_stride = c.decoder.header_words_stride();

  Value at = e.offset(group.base, group.disp + int64_t(c.spec.rows) * c.format.header_bytes);
  Value words = words_stride ? e.offset(group.base, group.disp + c.decoder.header_words_offset()) : Value();

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
