#pragma once

// A core turns one row group times a tile of tokens into sums: the K loop. Two of them, one an activation arm; both
// take codecs through the Decoder interface and leave the sums to the epilogue.

#include <vector>

#include "codegen/kernels/decoder.h"

namespace cortiq::codegen {

/// What both cores share about the kernel they are in.
struct CoreContext {
  Emit& e;
  const KernelSpec& spec;
  Decoder& decoder;
  Geometry geometry;
  formats::R16Format format;
  unsigned vectors;          ///< vectors that hold a row group
  std::vector<Value> tokens; ///< activations of each token that the core takes at once
  Address scratch;           ///< behind the decoder's ladder area
  bool dot4;                 ///< the target has an instruction for vec.dot4
  bool signed_dot4;          ///< … and one for vec.signed_dot4
  int64_t ahead;             ///< bytes behind a record that it asks memory for; 0: what the processor guesses will do
  Value turned = {};         ///< the only token's codes in the decoder's order, where they were arranged so
  Address starts = {};       ///< what the only token's spans' sums start at, where that was made once a call
};

/// The finished sums of a row group: sums[t * vectors + v].
using Sums = std::vector<Value>;

Sums fast_core(CoreContext& c, Address group);
/// Makes c.starts at an address with so many bytes of room, where fast_core makes use of them.
void make_starts(CoreContext& c, Address at, int64_t room);
Sums exact_core(CoreContext& c, Address group);

/// Tokens that a core takes at once: as many as the registers hold sums of.
inline unsigned tokens_at_once(const Emit& e) {
  return e.lanes() == 16 ? 8 : 4;
}

/// The K loop that cores run: whole iterations of `unroll` records in a loop, then the records that remain.
/// `record` emits one record (weights first_step.. limited to `steps` groups of four) and returns the new carried
/// values; `index` is a counter that advances by `index_step` a record, for addressing activations, and `static_index`
/// the part of it that is known within the iteration.
struct RecordPlace {
  Record record;
  Value index;          ///< activation counter at the start of the iteration
  int64_t static_index; ///< what to add to it for this record
  uint64_t weights;     ///< weights of this record that exist
  Address ahead;        ///< what to ask memory for while this record is computed; no base: nothing
  int64_t ahead_bytes;  ///< how much of it
};

/// Whether fast_core asks for the levels of spans of so many weights 128 higher, for dot products of unsigned ones.
bool takes_raised_levels(const CoreContext& c, unsigned span);

/// Decodes a record's weights to f32 lanes, and asks for those ahead: `use` gets each weight's number in the record, in
/// the order in which the codec gives them cheapest, and its values by row vector.
void for_each_weight(CoreContext& c, const RecordPlace& place,
                     const std::function<void(unsigned, const std::vector<Value>&)>& use);

/// Asks for part number `part` of `parts` of what a record is to ask for.
void prefetch_part(CoreContext& c, const RecordPlace& place, unsigned part, unsigned parts);

/// A part of a row: from iteration number `first` of the loop on (null: the first), and how many weights.
struct RowPart {
  Value first;
  uint64_t weights = 0; ///< whole iterations, but for what the row ends with; 0: the whole row
};
std::vector<Value> k_loop(CoreContext& c, Address group, int64_t index_step, std::vector<Value> carried,
                          const std::function<std::vector<Value>(const RecordPlace&, std::vector<Value>)>& record,
                          const RowPart& part = {});

} // namespace cortiq::codegen
