// Products of signed bytes, and what brings lanes into their order: what instruction sets with such products select
// directly. Ops.td includes this file.

#ifndef CORTIQ_VEC_PRODUCT_OPS_TD
#define CORTIQ_VEC_PRODUCT_OPS_TD

def Vec_SignedDot4Op : Vec_Op<"signed_dot4", [Pure, AllTypesMatch<["lhs", "rhs"]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "adds the sums of four signed byte products to i32 lanes";
  let description = [{
    Lane j is `acc[j]` plus the sum of `lhs[4j+n] * rhs[4j+n]` for n in 0..3, exact, with `lhs` within -128..127 and
    `rhs` within +-127.

    ```mlir
    %n = vec.signed_dot4 %acc, %w, %x : vector<4xi32>, vector<16xi8>
    ```
  }];
  let arguments = (ins Vec_I32Vector:$acc, Vec_I8Vector:$lhs, Vec_I8Vector:$rhs);
  let results = (outs Vec_I32Vector:$result);
  let assemblyFormat = "$acc `,` $lhs `,` $rhs attr-dict `:` type($acc) `,` type($lhs)";
  let hasVerifier = 1;
}

def Vec_Dot8PairsOp : Vec_Op<"dot8_pairs", [Pure, AllTypesMatch<["lhs", "rhs"]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "adds the product of two signed byte matrices of two rows of eight to a matrix of two by two";
  let description = [{
    Both operands hold two rows of eight bytes, and lane 2i+j of the result is `acc[2i+j]` plus the sum of
    `lhs[8i+n] * rhs[8j+n]` for n in 0..7, exact. 128 bits only.

    ```mlir
    %n = vec.dot8_pairs %acc, %w, %x : vector<4xi32>, vector<16xi8>
    ```
  }];
  let arguments = (ins Vec_I32Vector:$acc, Vec_I8Vector:$lhs, Vec_I8Vector:$rhs);
  let results = (outs Vec_I32Vector:$result);
  let assemblyFormat = "$acc `,` $lhs `,` $rhs attr-dict `:` type($acc) `,` type($lhs)";
  let hasVerifier = 1;
}

def Vec_PackBf16Op : Vec_Op<"pack_bf16", [Pure, AllTypesMatch<["low", "high"]>]> {
  let summary = "the lanes of two vectors of f32 as bf16, those of the first in front";
  let description = [{
    Rounds to the nearest, halves to even; subnormals become 0.

    ```mlir
    %p = vec.pack_bf16 %a, %b : vector<16xf32> to vector<32xbf16>
    ```
  }];
  let arguments = (ins Vec_F32Vector:$low, Vec_F32Vector:$high);
  let results = (outs Vec_AnyVector:$result);
  let assemblyFormat = "$low `,` $high attr-dict `:` type($low) `to` type($result)";
  let hasVerifier = 1;
}

def Vec_InterleaveOp : Vec_Op<"interleave", [Pure, SameOperandsAndResultType]> {
  let summary = "the lanes of half of each operand, in turn";
  let description = [{
    Lanes are groups of `bytes` bytes. Lane 2i is lane i of the lower half of `lhs` (of the upper one with `high`), lane
    2i+1 that of `rhs`.

    ```mlir
    %z = vec.interleave %a, %b bytes 4 high : vector<16xi8>
    ```
  }];
  let arguments = (ins Vec_AnyVector:$lhs, Vec_AnyVector:$rhs, I64Attr:$bytes, UnitAttr:$high);
  let results = (outs Vec_AnyVector:$result);
  let assemblyFormat = "$lhs `,` $rhs `bytes` $bytes (`high` $high^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Vec_DeinterleaveOp : Vec_Op<"deinterleave", [Pure, SameOperandsAndResultType]> {
  let summary = "every second lane of both operands";
  let description = [{
    The even lanes of `lhs`, then those of `rhs`; the odd ones with `odd`.

    ```mlir
    %u = vec.deinterleave %a, %b odd : vector<4xi32>
    ```
  }];
  let arguments = (ins Vec_I32Vector:$lhs, Vec_I32Vector:$rhs, UnitAttr:$odd);
  let results = (outs Vec_I32Vector:$result);
  let assemblyFormat = "$lhs `,` $rhs (`odd` $odd^)? attr-dict `:` type($result)";
}

#endif
