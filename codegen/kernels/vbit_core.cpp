// The core of vbit and vbit_ro, on payloads as they stand in the file: every row has a bit width of its own.
//
//   w = (code - level) * scale[row][k / 32], level = 2^(width - 1) - 1
//
// Data (CMF specification 2.6, 2.7): widths, a byte a row; f16 scales, one for 32 weights; in vbit_ro a table of rows +
// 1 u32, where rows start; then the rows' codes, highest bit first, K / 8 bytes for each bit of the width. A row a
// lane: a gather takes the four bytes around a code, a byte shuffle turns them, a shift by lanes brings the code down.
// All is counted from the group's own start, which is a pointer, so that 32 bits suffice; in vbit that start is the sum
// of all widths before. Lanes beyond a short group's rows have width 0 and read its first row. Four bytes from the last
// code on end inside the tail padding that the layout states.
// Registers: bit[v] the rows' next bits, acc[t][v] the sums, both carried over K.

#include "codegen/kernels/vbit_core.h"

#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {

using formats::KernelArgs;

namespace {

constexpr unsigned kGroup = 32; // weights that share a scale
constexpr unsigned kUnroll = 4; // weights an iteration

} // namespace

VBitCore::VBitCore(Emit& e, const KernelSpec& spec, unsigned vectors)
    : e_(e), spec_(spec), vectors_(vectors), has_offsets_(spec.codec == formats::CodecId::kVBitRO) {}

std::vector<Value> VBitCore::begin_call(Value args, Address scratch) {
  scratch_ = scratch;
  const int64_t scale_bytes = int64_t(spec_.k) / kGroup * 2;
  Value payload = e_.load_ptr(args, offsetof(KernelArgs, tensor));
  Value rows = e_.load_index(args, offsetof(KernelArgs, tensor_rows));
  Value first = e_.load_index(args, offsetof(KernelArgs, first_row));
  Value widths = e_.offset(payload, first, 1);
  Value scales = e_.offset(e_.offset(payload, rows, 1), first, scale_bytes);
  Value behind_scales = e_.offset(payload, rows, 1 + scale_bytes);
  if (has_offsets_) {
    streams_ = e_.offset(e_.offset(behind_scales, rows, 4), 4);
    return {widths, scales, e_.offset(behind_scales, first, 4)};
  }
  e_.store(widths_before(args, payload, first), scratch_, 1);
  return {widths, scales, e_.offset(behind_scales, e_.read_index(scratch_), int64_t(spec_.k) / 8)};
}

/// The sum of the first `count` widths, in every lane.
Value VBitCore::widths_before(Value args, Value widths, Value count) {
  std::vector<int32_t> lane(e_.lanes());
  for (unsigned l = 0; l < e_.lanes(); ++l)
    lane[l] = int32_t(l);
  Value numbers = e_.lanes_i32(lane);
  Value end = e_.load_splat_i32({args, offsetof(KernelArgs, first_row)});
  std::vector<Value> sums =
      e_.loop(e_.index(0), count, e_.lanes(), {e_.splat_i32(0), numbers}, [&](Value i, const std::vector<Value>& in) {
        Value wide = e_.widen_unsigned(e_.load(e_.narrow(e_.i8_type()), {e_.offset(widths, i, 1), 0}));
        Value counts = e_.shr_s(e_.sub(in[1], end), 31);
        return std::vector<Value>{e_.add(in[0], e_.bit_and(wide, counts)),
                                  e_.add(in[1], e_.splat_i32(int32_t(e_.lanes())))};
      });
  return e_.reduce_add(sums[0]);
}

VBitCore::Rows VBitCore::rows_of(Value widths) {
  Rows rows;
  std::vector<Value> width;
  for (unsigned v = 0; v < vectors_; ++v) {
    const unsigned lanes = std::min(spec_.rows - v * e_.lanes(), e_.lanes());
    Value bytes = e_.load(e_.narrow(e_.i8_type()), {widths, int64_t(v) * e_.lanes()}, lanes);
    width.push_back(e_.widen_unsigned(bytes));
    e_.store(width[v], scratch_ + int64_t(v) * e_.vector_bytes());
  }
  for (unsigned v = 0; v < vectors_; ++v) {
    Value before = e_.splat_i32(0);
    for (unsigned r = 0; r + 1 < spec_.rows; ++r) {
      std::vector<int32_t> is_behind(e_.lanes());
      for (unsigned l = 0; l < e_.lanes(); ++l)
        is_behind[l] = v * e_.lanes() + l > r && v * e_.lanes() + l < spec_.rows ? -1 : 0;
      Value one = e_.load_splat_i32(scratch_ + int64_t(r) * 4);
      before = e_.add(before, e_.bit_and(one, e_.lanes_i32(is_behind)));
    }
    rows.start.push_back(e_.mul(before, e_.splat_i32(int32_t(spec_.k))));
    rows.unused.push_back(e_.sub(e_.splat_i32(32), width[v]));
    rows.mask.push_back(e_.shr_v(e_.splat_i32(-1), rows.unused[v]));
    rows.level.push_back(e_.shr_u(rows.mask[v], 1));
  }
  return rows;
}

Sums VBitCore::sums_of(const std::vector<Value>& tokens, const Rows& rows, Value scales, Value stream) {
  const size_t sums = tokens.size() * vectors_;
  const int32_t scale_bytes = int32_t(spec_.k / kGroup * 2);
  std::vector<int8_t> turned;
  for (int i = 0; i < 16; ++i)
    turned.push_back(int8_t(i ^ 3));
  std::vector<Value> carried(sums, e_.splat_f32(0));
  carried.insert(carried.end(), rows.start.begin(), rows.start.end());
  carried = e_.loop(
      e_.index(0), e_.index(int64_t(spec_.k / kGroup)), 1, carried, [&](Value group, const std::vector<Value>& outer) {
        std::vector<Value> scale;
        for (unsigned v = 0; v < vectors_; ++v) {
          std::vector<int32_t> lane(e_.lanes());
          for (unsigned l = 0; l < e_.lanes(); ++l)
            lane[l] = int32_t(std::min(v * e_.lanes() + l, spec_.rows - 1)) * scale_bytes;
          scale.push_back(e_.half_bits_to_f32(e_.gather_i32({e_.offset(scales, group, 2), 0}, e_.lanes_i32(lane), 1)));
        }
        return e_.loop(e_.index(0), e_.index(kGroup), kUnroll, outer, [&](Value k, const std::vector<Value>& in) {
          std::vector<Value> next = in;
          for (unsigned i = 0; i < kUnroll; ++i)
            for (unsigned v = 0; v < vectors_; ++v) {
              Value& bit = next[sums + v];
              Value bytes = e_.bitcast(e_.gather_i32({stream, 0}, e_.shr_u(bit, 3), 1), e_.i8());
              Value word = e_.bitcast(e_.lookup16(bytes, e_.table16(turned)), e_.i32());
              Value behind = e_.sub(rows.unused[v], e_.bit_and(bit, e_.splat_i32(7)));
              Value code = e_.bit_and(e_.shr_v(word, behind), rows.mask[v]);
              Value w = e_.mul(e_.to_f32(e_.sub(code, rows.level[v])), scale[v]);
              for (size_t t = 0; t < tokens.size(); ++t) {
                Value token = e_.offset(e_.offset(tokens[t], group, int64_t(kGroup) * 4), k, 4);
                Value& acc = next[t * vectors_ + v];
                acc = e_.fma(w, e_.load_splat_f32({token, int64_t(i) * 4}), acc);
              }
              // A width is what its 32 lacks.
              bit = e_.add(bit, e_.sub(e_.splat_i32(32), rows.unused[v]));
            }
          return next;
        });
      });
  carried.resize(sums);
  return carried;
}

VBitCore::Result VBitCore::run(const std::vector<Value>& tokens, const std::vector<Value>& carried) {
  const int64_t scale_bytes = int64_t(spec_.k) / kGroup * 2;
  const int64_t rows = spec_.rows;
  const Rows lanes = rows_of(carried[0]);
  Value stream = has_offsets_ ? e_.offset(streams_, e_.read_index({carried[2], 0}), 1) : carried[2];
  Result result;
  result.next = {e_.offset(carried[0], rows), e_.offset(carried[1], rows * scale_bytes)};
  if (has_offsets_) {
    result.next.push_back(e_.offset(carried[2], rows * 4));
  } else {
    // Where the last row ends the next group starts.
    Value all = e_.splat_i32(0);
    for (int64_t r = 0; r < rows; ++r)
      all = e_.add(all, e_.load_splat_i32(scratch_ + r * 4));
    e_.store(all, scratch_, 1);
    result.next.push_back(e_.offset(stream, e_.read_index(scratch_), int64_t(spec_.k) / 8));
  }
  result.sums = sums_of(tokens, lanes, carried[1], stream);
  return result;
}

} // namespace cortiq::codegen
