// The core of vbit and vbit_ro, on payloads as they stand in the file: every row has a bit width of its own.
//
//   w = (code - level) * scale[row][k / 32], level = 2^(width - 1) - 1
//
// Data (CMF specification 2.6, 2.7): widths, a byte a row; f16 scales, one for 32 weights; in vbit_ro a table of rows +
// 1 u32, where rows start; then the rows' codes, highest bit first, K / 8 bytes for each bit of the width. Sixteen
// codes take two bytes a bit, so a unit of sixteen starts on a byte, and within it the places of the codes depend on
// the width alone: a table beside the code has them for each width.
//
// Row by row, a weight a lane:
//   words = the two bytes of each code, the first above the other      a byte lookup
//   level = f32(words & mask) - (2^(width - 1) - 1) * 2^shift          the bits are put below the exponent of 2^23
//   group = sum of the two units: level * x                            per lane
//   acc   = fma(group, scale, acc)
// Codes stay where they are in their two bytes: how far above bit 0 is the same for all that a lane gets of a row, and
// a power of two rounds nothing. Where the row ends lanes are multiplied by 2^-shift and added. All vectors together
// are sixteen lanes on every target, so that sums have the same order and bits everywhere. A unit is read as 16 bytes,
// which may end inside the tail padding that the layout states. Registers: places, mask, zero of the row; acc[t],
// carried over K.

#include "codegen/kernels/vbit_core.h"

#include <bit>
#include <cmath>

#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {

using formats::KernelArgs;

namespace {

constexpr unsigned kUnit = 16, kUnits = 2;     // weights, of which two units share a scale
constexpr unsigned kGroup = kUnit * kUnits;    // weights that share a scale
constexpr unsigned kScales = 16;               // converted at once
constexpr int64_t kLanesBytes = 64;            // of sixteen lanes
constexpr uint32_t kInteger = 0x4b000000;      // 2^23 as f32: integers below it are its lowest bits
constexpr int64_t kWidthRow = 4 * kLanesBytes; // of the table by width
constexpr unsigned kMostBits = 8;

} // namespace

VBitCore::VBitCore(Emit& e, const KernelSpec& spec, unsigned vectors)
    : e_(e), spec_(spec), vectors_(vectors), has_offsets_(spec.codec == formats::CodecId::kVBitRO) {}

unsigned VBitCore::parts() const {
  return kUnit / e_.lanes();
}

std::vector<Value> VBitCore::begin_call(Value args, Address scratch) {
  scratch_ = scratch;
  scales_ = scratch_ + kLanesBytes;
  sums_ = scales_ + kLanesBytes;
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

/// By width: places of the codes' bytes in a unit, the masks of codes in them, what a code of the level 0 is as f32,
/// and 2^-shift; sixteen lanes each.
Value VBitCore::width_table() {
  std::vector<uint32_t> table;
  for (unsigned width = 0; width <= kMostBits; ++width) {
    std::vector<uint32_t> places, masks, zeros, factors;
    const uint32_t zero = width ? (1u << (width - 1)) - 1 : 0;
    for (unsigned i = 0; i < kUnit; ++i) {
      const unsigned bit = i * width, byte = bit / 8, shift = 16 - bit % 8 - width;
      places.push_back(byte << 8 | (byte + 1));
      masks.push_back(((1u << width) - 1) << shift);
      zeros.push_back(kInteger + (zero << shift));
      factors.push_back(std::bit_cast<uint32_t>(std::ldexp(1.0f, -int(shift))));
    }
    for (const std::vector<uint32_t>* lanes : {&places, &masks, &zeros, &factors})
      table.insert(table.end(), lanes->begin(), lanes->end());
  }
  return e_.table(table);
}

VBitCore::Row VBitCore::row_of(Value number) {
  Row row;
  row.width = e_.read_index({e_.offset(scratch_.base, number, 4), scratch_.disp});
  const Address at{e_.offset(width_table(), row.width, kWidthRow), 0};
  for (unsigned p = 0; p < parts(); ++p) {
    const Address part = at + p * e_.vector_bytes();
    row.places.push_back(e_.load(e_.i32(), part));
    row.masks.push_back(e_.load(e_.i32(), part + kLanesBytes));
    row.zeros.push_back(e_.load(e_.f32(), part + 2 * kLanesBytes));
  }
  row.factors = at + 3 * kLanesBytes;
  return row;
}

/// Levels of the unit at `stream` as f32.
std::vector<Value> VBitCore::levels(const Row& row, Value stream) {
  Value integer = e_.splat_i32(int32_t(kInteger));
  std::vector<Value> levels;
  for (unsigned p = 0; p < parts(); ++p) {
    Value places = e_.bitcast(row.places[p], e_.i8());
    Value words = e_.lookup16(e_.load_repeated({stream, 0}), places);
    words = e_.bitcast(words, e_.i32());
    Value number = e_.lanes() == 16 ? e_.blend_bits(row.masks[p], words, integer)
                                    : e_.bit_or(e_.bit_and(words, row.masks[p]), integer);
    levels.push_back(e_.sub(e_.bitcast(number, e_.f32()), row.zeros[p]));
  }
  return levels;
}

/// Adds `count` groups, at most kScales, whose scales stand converted in scratch.
std::vector<Value> VBitCore::over_groups(const Row& row, const Cursor& at, uint64_t count, std::vector<Value> sums) {
  constexpr uint64_t kAtOnce = 2; // what counts them costs as much as a step of a vector
  const size_t own = sums.size();
  sums.push_back(at.stream);
  const auto groups = [&](Value first, uint64_t number, std::vector<Value> in) {
    for (uint64_t g = 0; g < number; ++g) {
      std::vector<Value> total(own);
      for (unsigned u = 0; u < kUnits; ++u) {
        const std::vector<Value> level = levels(row, u ? e_.offset(in[own], row.width, 2 * u) : in[own]);
        for (size_t i = 0; i < own; ++i) {
          const size_t t = i / parts(), p = i % parts();
          Value x = e_.load(e_.f32(), {e_.offset(at.tokens[t], first, kGroup * 4),
                                       int64_t((g * kUnits + u) * kLanesBytes + p * e_.vector_bytes())});
          total[i] = u ? e_.fma(level[p], x, total[i]) : e_.mul(level[p], x);
        }
      }
      Value scale = e_.load_splat_f32({e_.offset(scales_.base, first, 4), scales_.disp + int64_t(4 * g)});
      for (size_t i = 0; i < own; ++i)
        in[i] = e_.fma(total[i], scale, in[i]);
      in[own] = e_.offset(in[own], row.width, 2 * kUnits);
    }
    return in;
  };
  const uint64_t whole = count / kAtOnce * kAtOnce;
  if (whole != 0)
    sums = e_.loop(e_.index(0), e_.index(int64_t(whole)), kAtOnce, sums,
                   [&](Value first, const std::vector<Value>& in) { return groups(first, kAtOnce, in); });
  return whole == count ? sums : groups(e_.index(int64_t(whole)), 1, std::move(sums));
}

/// A row's sums by token, in every lane.
std::vector<Value> VBitCore::row_sums(const Row& row, const Cursor& at) {
  const uint64_t groups = spec_.k / kGroup;
  const size_t tokens = at.tokens.size(), own = tokens * parts();
  std::vector<Value> carried(own, e_.splat_f32(0));
  carried.push_back(at.stream);
  carried.push_back(at.scales);
  carried.insert(carried.end(), at.tokens.begin(), at.tokens.end());
  const auto some = [&](const std::vector<Value>& in, uint64_t count) {
    for (unsigned p = 0; p * e_.lanes() < count; ++p)
      e_.store(e_.to_f32(e_.load(e_.narrow(e_.f16_type()), {in[own + 1], int64_t(p) * e_.lanes() * 2})),
               scales_ + int64_t(p) * e_.vector_bytes());
    return over_groups(row, {in[own], in[own + 1], {in.begin() + own + 2, in.end()}}, count,
                       {in.begin(), in.begin() + own});
  };
  if (groups >= kScales)
    carried =
        e_.loop(e_.index(0), e_.index(int64_t(groups / kScales)), 1, carried, [&](Value, const std::vector<Value>& in) {
          std::vector<Value> next = some(in, kScales);
          next.push_back(e_.offset(in[own + 1], kScales * 2));
          for (size_t t = 0; t < tokens; ++t)
            next.push_back(e_.offset(in[own + 2 + t], int64_t(kScales) * kGroup * 4));
          return next;
        });
  if (groups % kScales)
    carried = some(carried, groups % kScales);
  std::vector<Value> sums;
  for (size_t t = 0; t < tokens; ++t) {
    std::vector<Value> part;
    for (unsigned p = 0; p < parts(); ++p)
      part.push_back(e_.mul(carried[t * parts() + p], e_.load(e_.f32(), row.factors + p * e_.vector_bytes())));
    for (size_t half = parts() / 2; half > 0; half /= 2)
      for (size_t p = 0; p < half; ++p)
        part[p] = e_.add(part[p], part[p + half]);
    sums.push_back(e_.reduce_add(part[0]));
  }
  return sums;
}

VBitCore::Result VBitCore::run(const std::vector<Value>& tokens, const std::vector<Value>& carried) {
  const int64_t scale_bytes = int64_t(spec_.k) / kGroup * 2;
  const int64_t rows = spec_.rows;
  for (unsigned v = 0; v < vectors_; ++v) {
    const unsigned lanes = std::min(spec_.rows - v * e_.lanes(), e_.lanes());
    Value bytes = e_.load(e_.narrow(e_.i8_type()), {carried[0], int64_t(v) * e_.lanes()}, lanes);
    e_.store(e_.widen_unsigned(bytes), scratch_ + int64_t(v) * e_.vector_bytes());
  }
  Value stream = has_offsets_ ? e_.offset(streams_, e_.read_index({carried[2], 0}), 1) : carried[2];
  stream = e_.loop(e_.index(0), e_.index(rows), 1, {stream}, [&](Value number, const std::vector<Value>& in) {
    const Row row = row_of(number);
    const std::vector<Value> sums = row_sums(row, {in[0], e_.offset(carried[1], number, scale_bytes), tokens});
    for (size_t t = 0; t < tokens.size(); ++t)
      e_.store(sums[t], {e_.offset(sums_.base, number, 4), sums_.disp + int64_t(t) * kLanesBytes}, 1);
    return std::vector<Value>{e_.offset(in[0], row.width, int64_t(spec_.k) / 8)};
  })[0];
  Result result;
  for (size_t t = 0; t < tokens.size(); ++t)
    for (unsigned v = 0; v < vectors_; ++v)
      result.sums.push_back(e_.load(e_.f32(), sums_ + int64_t(t) * kLanesBytes + int64_t(v) * e_.vector_bytes(),
                                    std::min(spec_.rows - v * e_.lanes(), e_.lanes())));
  // Where the last row ends the next group starts.
  result.next = {e_.offset(carried[0], rows), e_.offset(carried[1], rows * scale_bytes),
                 has_offsets_ ? e_.offset(carried[2], rows * 4) : stream};
  return result;
}

} // namespace cortiq::codegen
