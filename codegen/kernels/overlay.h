#pragma once

// Codecs with an overlay (q1s, q1t): a few weights beside the records replace what these say. After the K loop of a row
// group, every row's entries correct its sums: sum += (value - what the records say) * x[column].
//
// Lane = row: each row walks through its own entries, all at the same time, as often as the row with the most of them
// needs; rows that are through add 0. What the entries look like is the reader's business, one a codec.

#include <memory>
#include <vector>

#include "codegen/kernels/core.h"

namespace cortiq::codegen {

/// Finds the overlay's entries of a row group.
class OverlayReader {
public:
  OverlayReader(Emit& e, const KernelSpec& spec, unsigned vectors) : e_(e), rows_(spec.rows), vectors_(vectors) {}
  virtual ~OverlayReader() = default;

  /// Emits what is read once a call, from the overlay's address, and gives what the groups carry from one to the next.
  virtual std::vector<Value> begin_call(Value args, Value overlay, Address scratch) = 0;

  /// The entries first[v]..end[v] - 1 of the group's rows (0 and 0 in lanes beyond them), and what the next group is
  /// given.
  struct Group {
    std::vector<Value> first, end, next;
  };
  virtual Group begin_group(const std::vector<Value>& carried) = 0;

  /// Column and value (f32) of an entry of each row; entries of rows that are through are number 0, and their columns
  /// masked by `active`.
  struct Entry {
    Value column, value;
  };
  virtual Entry entry(unsigned v, Value number, Value active) = 0;

protected:
  /// Lanes of vector v that are rows.
  unsigned lanes(unsigned v) const { return std::min(rows_ - v * e_.lanes(), e_.lanes()); }

  Emit& e_;
  unsigned rows_, vectors_;
};

class Overlay {
public:
  /// Emits what is read once a call. `scratch`: kScratchBytes.
  Overlay(Emit& e, const KernelSpec& spec, const formats::R16Format& format, unsigned vectors, Value args,
          Address scratch);
  static constexpr int64_t kScratchBytes = 512;

  /// What the groups carry from one to the next, at the first of them.
  const std::vector<Value>& carried() const { return carried_; }

  /// Finds the entries of a group; returns what the next one carries.
  std::vector<Value> begin_group(const std::vector<Value>& carried);

  /// The sums of the group's tokens in `c`, corrected.
  Sums correct(const CoreContext& c, Address group, Sums sums);

private:
  Value activation(const CoreContext& c, size_t t, Value column);

  Emit& e_;
  unsigned rows_, vectors_;
  Address scratch_;
  std::unique_ptr<OverlayReader> reader_;
  std::vector<Value> carried_;
  OverlayReader::Group group_;
  Value rounds_; ///< entries of the row that has the most
};

/// The reader of a codec's entries, or null for codecs without an overlay.
std::unique_ptr<OverlayReader> make_overlay_reader(Emit& e, const KernelSpec& spec, unsigned vectors);
bool has_overlay(formats::CodecId codec);

} // namespace cortiq::codegen
