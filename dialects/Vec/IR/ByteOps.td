// Operations that move bytes and bits across a vector: lookups in tables of registers, choices by sign and by mask,
// fields of bits. Ops.td includes this file.

#ifndef CORTIQ_VEC_BYTE_OPS_TD
#define CORTIQ_VEC_BYTE_OPS_TD

def Vec_Lookup64Op : Vec_Binary<"lookup64", Vec_I8Vector, "bytes chosen from a table of 64"> {
  let description = [{
    `lhs` is the table, `rhs` holds the indices: lane j of the result is byte `rhs[j] & 63`. Needs 512 bits.

    ```mlir
    %levels = vec.lookup64 %table, %codes : vector<64xi8>
    ```
  }];
  let hasVerifier = 1;
}

def Vec_Lookup128Op : Vec_Op<"lookup128", [Pure, SameOperandsAndResultType]> {
  let summary = "bytes chosen from a table of 128";
  let description = [{
    `low` and `high` are the table's halves: lane j of the result is byte `index[j] & 127`. Needs 512 bits. Two of them
    and a `vec.select_negative` by the indices themselves are a table of 256.

    ```mlir
    %r = vec.lookup128 %index, %low, %high : vector<64xi8>
    ```
  }];
  let arguments = (ins Vec_I8Vector:$index, Vec_I8Vector:$low, Vec_I8Vector:$high);
  let results = (outs Vec_I8Vector:$result);
  let assemblyFormat = "$index `,` $low `,` $high attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Vec_LoadRepeatedOp : Vec_Op<"load_repeated", [MemoryEffects<[MemRead]>]> {
  let summary = "reads 16 bytes and repeats them in every 128 bits";
  let description = [{
    Reads 16 bytes at `ptr + offset`: what `vec.lookup16` takes as its table in every part. Needs 256 or 512 bits; in
    128 bits it would be a `vec.load`.

    ```mlir
    %t = vec.load_repeated %p[32] : vector<32xi8>
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, I64Attr:$offset);
  let results = (outs Vec_I8Vector:$result);
  let assemblyFormat = "$ptr `[` $offset `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Vec_SelectNegativeOp : Vec_Op<"select_negative", [Pure, SameOperandsAndResultType]> {
  let summary = "bytes of one vector where another's are negative, else of a third";
  let description = [{
    ```mlir
    %r = vec.select_negative %signs, %where_negative, %elsewhere : vector<64xi8>
    ```
  }];
  let arguments = (ins Vec_I8Vector:$signs, Vec_I8Vector:$negative, Vec_I8Vector:$other);
  let results = (outs Vec_I8Vector:$result);
  let assemblyFormat = "$signs `,` $negative `,` $other attr-dict `:` type($result)";
}

def Vec_BlendBitsOp : Vec_Op<"blend_bits", [Pure, SameOperandsAndResultType]> {
  let summary = "bits of one vector where a mask has ones, else of another";
  let description = [{
    ```mlir
    %r = vec.blend_bits %mask, %ones, %zeros : vector<64xi8>
    ```
  }];
  let arguments = (ins Vec_IntVector:$mask, Vec_IntVector:$ones, Vec_IntVector:$zeros);
  let results = (outs Vec_IntVector:$result);
  let assemblyFormat = "$mask `,` $ones `,` $zeros attr-dict `:` type($result)";
}

def Vec_BitFieldsOp : Vec_Op<"bit_fields", [Pure, SameOperandsAndResultType]> {
  let summary = "eight bits from any place of a byte's own 64";
  let description = [{
    Lane j is the eight bits of `value` from bit `first[j] & 63` on, of the 64 bits that lane j stands in, counted from
    the lowest and round the end.

    ```mlir
    %r = vec.bit_fields %first, %value : vector<64xi8>
    ```
  }];
  let arguments = (ins Vec_I8Vector:$first, Vec_I8Vector:$value);
  let results = (outs Vec_I8Vector:$result);
  let assemblyFormat = "$first `,` $value attr-dict `:` type($result)";
}

#endif
