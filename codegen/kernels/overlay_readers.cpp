// Entries of overlays as formats/layout/overlay_form.h puts them beside the row groups.

#include "codegen/kernels/overlay.h"

#include "formats/artifact/kernel_abi.h"

namespace cortiq::codegen {
namespace {

using formats::CodecId;
using formats::KernelArgs;

/// q1s: u32 count, then entries of u32 row * K + column and f16 value, in ascending order. The entries of a group's
/// rows are found by halving: all rows search at the same time for where the next row's entries start.
class Q1SReader final : public OverlayReader {
public:
  Q1SReader(Emit& e, const KernelSpec& spec, unsigned vectors) : OverlayReader(e, spec, vectors), k_(spec.k) {}

  std::vector<Value> begin_call(Value args, Value overlay, Address scratch) override {
    scratch_ = scratch;
    entries_ = {overlay, 4};
    Value count = e_.load_splat_i32({overlay, 0});
    behind_ = e_.add(count, e_.splat_i32(1));
    // The largest power of two that is not above the count, and how many there are up to it: 0 and none where the count
    // is 0. The bound keeps entry numbers within what a gather can address.
    Value clamped = e_.fmin(e_.fmax(e_.to_f32(count), e_.splat_f32(0.5f)), e_.splat_f32(0x1p28f));
    Value exponent = e_.bit_and(e_.bitcast(clamped, e_.i32()), e_.splat_i32(0x7f800000));
    top_ = e_.to_i32(e_.bitcast(exponent, e_.f32()));
    e_.store(e_.sub(e_.shr_u(exponent, 23), e_.splat_i32(126)), scratch_, 1);
    halvings_ = e_.read_index(scratch_);
    Value row = e_.load_splat_i32({args, offsetof(KernelArgs, first_row)});
    std::vector<Value> start = lower_bounds({e_.mul(row, e_.splat_i32(int32_t(k_)))});
    e_.store(start[0], last_end(), 1);
    return {row};
  }

  Group begin_group(const std::vector<Value>& carried) override {
    Group group;
    Value row = carried[0];
    std::vector<Value> next_index;
    first_index_.clear();
    for (unsigned v = 0; v < vectors_; ++v) {
      std::vector<int32_t> lane(e_.lanes());
      for (unsigned l = 0; l < e_.lanes(); ++l)
        lane[l] = int32_t(v * e_.lanes() + l);
      Value index = e_.mul(e_.add(row, e_.lanes_i32(lane)), e_.splat_i32(int32_t(k_)));
      first_index_.push_back(index);
      next_index.push_back(e_.add(index, e_.splat_i32(int32_t(k_))));
    }
    // A row's first entry is the end of the row before, by way of memory.
    Value group_start = e_.load_splat_i32(last_end());
    std::vector<Value> ends = lower_bounds(next_index);
    e_.store(group_start, scratch_ + (kEnds - 4), 1);
    for (unsigned v = 0; v < vectors_; ++v)
      e_.store(ends[v], scratch_ + kEnds + int64_t(v) * e_.vector_bytes(), lanes(v));
    for (unsigned v = 0; v < vectors_; ++v) {
      const int64_t at = kEnds + int64_t(v) * e_.vector_bytes();
      group.first.push_back(e_.load(e_.i32(), scratch_ + (at - 4), lanes(v)));
      group.end.push_back(e_.load(e_.i32(), scratch_ + at, lanes(v)));
    }
    group.next = {e_.add(row, e_.splat_i32(int32_t(rows_)))};
    return group;
  }

  Entry entry(unsigned v, Value number, Value active) override {
    Value at = places(number);
    Value column = e_.bit_and(e_.sub(e_.gather_i32(entries_, at, 2), first_index_[v]), active);
    return {column, e_.half_bits_to_f32(e_.gather_i32(entries_ + 4, at, 2))};
  }

private:
  static constexpr int64_t kEnds = 256; ///< in the scratch, behind what the frame uses; one number stands before it

  Address last_end() const { return scratch_ + kEnds + int64_t(rows_ - 1) * 4; }

  /// Where entries stand, in units of two bytes.
  Value places(Value number) { return e_.mul(number, e_.splat_i32(3)); }

  /// How many entries are below each lane's index.
  std::vector<Value> lower_bounds(const std::vector<Value>& index) {
    std::vector<Value> carried(index.size(), e_.splat_i32(0));
    carried.push_back(top_);
    carried = e_.loop(e_.index(0), halvings_, 1, carried, [&](Value, const std::vector<Value>& in) {
      std::vector<Value> next;
      Value step = in.back();
      for (size_t i = 0; i < index.size(); ++i) {
        Value more = e_.add(in[i], step);
        Value exists = e_.shr_s(e_.sub(more, behind_), 31);
        Value last = e_.bit_and(e_.sub(more, e_.splat_i32(1)), exists);
        Value found = e_.gather_i32(entries_, places(last), 2);
        Value take = e_.bit_and(below(found, index[i]), exists);
        next.push_back(e_.add(in[i], e_.bit_and(step, take)));
      }
      next.push_back(e_.shr_u(step, 1));
      return next;
    });
    carried.pop_back();
    return carried;
  }

  /// All ones where a < b, unsigned: the borrow of a - b.
  Value below(Value a, Value b) {
    Value borrow = e_.bit_or(e_.bit_and_not(a, b), e_.bit_and_not(e_.bit_xor(a, b), e_.sub(a, b)));
    return e_.shr_s(borrow, 31);
  }

  uint64_t k_;
  Address scratch_, entries_;
  Value behind_, top_, halvings_;
  std::vector<Value> first_index_;
};

/// q1t: a table of rows + 1 u32, the entries of row r are table[r] .. table[r + 1] - 1; then entries of u16 column and
/// f16 value.
class Q1TReader final : public OverlayReader {
public:
  using OverlayReader::OverlayReader;

  std::vector<Value> begin_call(Value args, Value overlay, Address) override {
    Value rows = e_.load_index(args, offsetof(KernelArgs, tensor_rows));
    entries_ = {e_.offset(overlay, rows, 4), 4};
    return {e_.offset(overlay, e_.load_index(args, offsetof(KernelArgs, first_row)), 4)};
  }

  Group begin_group(const std::vector<Value>& carried) override {
    Group group;
    for (unsigned v = 0; v < vectors_; ++v) {
      const Address at = {carried[0], int64_t(v) * e_.vector_bytes()};
      group.first.push_back(e_.load(e_.i32(), at, lanes(v)));
      group.end.push_back(e_.load(e_.i32(), at + 4, lanes(v)));
    }
    group.next = {e_.offset(carried[0], int64_t(rows_) * 4)};
    return group;
  }

  Entry entry(unsigned, Value number, Value active) override {
    Value both = e_.gather_i32(entries_, number, 4);
    Value column = e_.bit_and(e_.bit_and(both, e_.splat_i32(0xffff)), active);
    return {column, e_.half_bits_to_f32(e_.shr_u(both, 16))};
  }

private:
  Address entries_;
};

} // namespace

bool has_overlay(CodecId codec) {
  return codec == CodecId::kQ1S || codec == CodecId::kQ1T;
}

std::unique_ptr<OverlayReader> make_overlay_reader(Emit& e, const KernelSpec& spec, unsigned vectors) {
  if (spec.codec == CodecId::kQ1S)
    return std::make_unique<Q1SReader>(e, spec, vectors);
  if (spec.codec == CodecId::kQ1T)
    return std::make_unique<Q1TReader>(e, spec, vectors);
  return nullptr;
}

} // namespace cortiq::codegen
