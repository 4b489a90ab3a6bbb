#ifndef CORTIQ_VEC_OPS_TD
#define CORTIQ_VEC_OPS_TD

include "Types.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/LoopLikeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

//===----------------------------------------------------------------------===//
// The kernel and its loops
//===----------------------------------------------------------------------===//

def Vec_KernelOp : Vec_Op<"kernel", [IsolatedFromAbove, Symbol, SingleBlockImplicitTerminator<"ReturnOp">]> {
  let summary = "one kernel: a function of a pointer to its argument block";
  let description = [{
    The body is one block whose argument is the argument block's address. `isa` names the target the kernel was built
    for; selectors take their features from the target they are given, the attribute is for the reader.

    ```mlir
    vec.kernel @copy(%args: !vec.ptr) attributes {isa = "x86-64-v3"} {
      %src = vec.load_ptr %args[0]
      %dst = vec.load_ptr %args[8]
      %v = vec.load %src[0] : vector<8xf32>
      vec.store %v, %dst[0] : vector<8xf32>
      vec.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<StrAttr>:$isa);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, CArg<"::llvm::StringRef", "{}">:$isa)>];
  let extraClassDeclaration = [{
    /// The address of the argument block.
    ::mlir::Value getArgs() { return getBody().getArgument(0); }
    ::mlir::Block& getBlock() { return getBody().front(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasRegionVerifier = 1;
}

def Vec_ReturnOp : Vec_Op<"return", [Terminator, HasParent<"KernelOp">]> {
  let summary = "ends a kernel";
  let description = [{
    ```mlir
    vec.return
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Vec_LoopOp : Vec_Op<"loop", [
    RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlock,
    DeclareOpInterfaceMethods<LoopLikeOpInterface, ["getLoopInductionVars", "getInitsMutable", "getRegionIterArgs",
                                                    "getYieldedValuesMutable", "getLoopResults"]>]> {
  let summary = "a counted loop with carried values";
  let description = [{
    Runs the body for `i = lo, lo + step, …` while `i < hi` (signed); not at all when `lo >= hi`. `iter_args` are carried
    from one iteration to the next through `vec.yield`; the results are their last values, or the initial ones.

    ```mlir
    %sum = vec.loop %i = %lo to %hi step 1 iter_args(%a = %zero) -> (vector<8xf32>) {
      %p = vec.ptr_offset %x, %i * 32
      %v = vec.load %p[0] : vector<8xf32>
      %n = vec.add %a, %v : vector<8xf32>
      vec.yield %n : vector<8xf32>
    }
    ```
  }];
  let arguments = (ins Index:$lo, Index:$hi, I64Attr:$step, Variadic<Vec_AnyValue>:$initArgs);
  let results = (outs Variadic<Vec_AnyValue>:$results);
  let regions = (region SizedRegion<1>:$body);
  let skipDefaultBuilders = 1;
  let builders = [
    // `body` builds the block's ops and returns the values to yield; without it the block stays without terminator.
    OpBuilder<(ins "::mlir::Value":$lo, "::mlir::Value":$hi, "int64_t":$step, "::mlir::ValueRange":$inits,
      CArg<"::llvm::function_ref<::llvm::SmallVector<::mlir::Value>(::mlir::OpBuilder&, ::mlir::Location, "
           "::mlir::Value, ::mlir::ValueRange)>", "nullptr">:$body)>
  ];
  let extraClassDeclaration = [{
    ::mlir::Block& getBlock() { return getBody().front(); }
    ::mlir::Value getInductionVar() { return getBody().getArgument(0); }
    ::mlir::Block::BlockArgListType getCarried() { return getBody().getArguments().drop_front(); }
    ::mlir::OperandRange getYielded() { return getBody().front().getTerminator()->getOperands(); }
  }];
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Vec_YieldOp : Vec_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"LoopOp">]> {
  let summary = "ends a loop's body with the values of the next iteration";
  let description = [{
    ```mlir
    vec.yield %a, %p : vector<8xf32>, !vec.ptr
    ```
  }];
  let arguments = (ins Variadic<Vec_AnyValue>:$values);
  let builders = [OpBuilder<(ins), [{}]>];
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// Addresses and scalars
//===----------------------------------------------------------------------===//

def Vec_IndexOp : Vec_Op<"index", [Pure, ConstantLike]> {
  let summary = "an index constant";
  let description = [{
    ```mlir
    %c16 = vec.index 16
    ```
  }];
  let arguments = (ins I64Attr:$value);
  let results = (outs Index:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
}

class Vec_LoadField<string mnemonic, Type type, string what> : Vec_Op<mnemonic, [Pure]> {
  let summary = "reads " # what # " from the argument block";
  let description = [{
    The argument block does not change during a call, so the op is pure. Only fields of the kernel's own argument may
    be read this way; offset in bytes.

    ```mlir
    %x = vec.}] # mnemonic # [{ %args[8]
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, I64Attr:$offset);
  let results = (outs type:$result);
  let assemblyFormat = "$ptr `[` $offset `]` attr-dict";
  let hasVerifier = 1;
}

def Vec_LoadPtrOp : Vec_LoadField<"load_ptr", Vec_PtrType, "a pointer">;
def Vec_LoadIndexOp : Vec_LoadField<"load_index", Index, "a 64-bit count or stride">;

def Vec_ReadIndexOp : Vec_Op<"read_index", [MemoryEffects<[MemRead]>]> {
  let summary = "an index from 32 bits of memory";
  let description = [{
    Reads the unsigned 32-bit number at `ptr + offset` bytes: a count or a position that the data states.

    ```mlir
    %n = vec.read_index %p[4]
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, I64Attr:$offset);
  let results = (outs Index:$result);
  let assemblyFormat = "$ptr `[` $offset `]` attr-dict";
}

def Vec_TableOp : Vec_Op<"table", [Pure]> {
  let summary = "the address of constant data beside the code";
  let description = [{
    The entries stand in memory one behind the other, lowest byte first, from a multiple of 64 bytes on. They are there
    to be read: nothing may be stored to the address. What has one value only is no table, but a `vec.constant`.

    ```mlir
    %squares = vec.table dense<[0, 1, 4, 9]> : tensor<4xi16>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Vec_PtrType:$result);
  let assemblyFormat = "$value attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The entries as they stand in memory; lives as long as the context.
    ::llvm::ArrayRef<char> getBytes();
  }];
}

def Vec_PtrAddOp : Vec_Op<"ptr_add", [Pure, SameOperandsAndResultType]> {
  let summary = "a pointer plus a constant number of bytes";
  let description = [{
    ```mlir
    %q = vec.ptr_add %p, 64
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, I64Attr:$offset);
  let results = (outs Vec_PtrType:$result);
  let assemblyFormat = "$ptr `,` $offset attr-dict";
  let hasFolder = 1;
}

def Vec_PtrOffsetOp : Vec_Op<"ptr_offset", [Pure, AllTypesMatch<["ptr", "result"]>]> {
  let summary = "a pointer plus an index times a constant number of bytes";
  let description = [{
    `scale` is any positive integer. Within a loop, an offset by the loop's counter costs no multiplication: it becomes
    part of an address or a pointer that is bumped.

    ```mlir
    %q = vec.ptr_offset %p, %i * 144
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, Index:$index, I64Attr:$scale);
  let results = (outs Vec_PtrType:$result);
  let assemblyFormat = "$ptr `,` $index `*` $scale attr-dict";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

def Vec_LoadOp : Vec_Op<"load", [MemoryEffects<[MemRead]>]> {
  let summary = "reads a vector";
  let description = [{
    Reads the vector at `ptr + offset` bytes, any alignment. With `lanes`, only the first so many lanes are read (nothing
    behind them is touched) and the others are zero.

    ```mlir
    %v = vec.load %p[32] : vector<8xf32>
    %t = vec.load %p[64] {lanes = 3 : i64} : vector<8xf32>
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, I64Attr:$offset, OptionalAttr<I64Attr>:$lanes);
  let results = (outs Vec_AnyVector:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$ptr, CArg<"int64_t", "0">:$offset), [{
    build($_builder, $_state, type, ptr, $_builder.getI64IntegerAttr(offset), ::mlir::IntegerAttr());
  }]>, OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$ptr, "int64_t":$offset, "int64_t":$lanes), [{
    build($_builder, $_state, type, ptr, $_builder.getI64IntegerAttr(offset), $_builder.getI64IntegerAttr(lanes));
  }]>];
  let assemblyFormat = "$ptr `[` $offset `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Vec_StoreOp : Vec_Op<"store", [MemoryEffects<[MemWrite]>]> {
  let summary = "writes a vector";
  let description = [{
    Writes the vector to `ptr + offset` bytes, any alignment. With `lanes`, only the first so many lanes are written.

    ```mlir
    vec.store %v, %p[32] : vector<8xf32>
    vec.store %v, %p[64] {lanes = 3 : i64} : vector<8xf32>
    ```
  }];
  let arguments = (ins Vec_AnyVector:$value, Vec_PtrType:$ptr, I64Attr:$offset, OptionalAttr<I64Attr>:$lanes);
  let builders = [OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$ptr, CArg<"int64_t", "0">:$offset), [{
    build($_builder, $_state, value, ptr, $_builder.getI64IntegerAttr(offset), ::mlir::IntegerAttr());
  }]>, OpBuilder<(ins "::mlir::Value":$value, "::mlir::Value":$ptr, "int64_t":$offset, "int64_t":$lanes), [{
    build($_builder, $_state, value, ptr, $_builder.getI64IntegerAttr(offset), $_builder.getI64IntegerAttr(lanes));
  }]>];
  let assemblyFormat = "$value `,` $ptr `[` $offset `]` attr-dict `:` type($value)";
  let hasVerifier = 1;
}

def Vec_LoadSplatOp : Vec_Op<"load_splat", [MemoryEffects<[MemRead]>]> {
  let summary = "reads one lane and repeats it in every lane";
  let description = [{
    Reads one value of the lane type at `ptr + offset` bytes. This is the only broadcast there is: four int8 codes for
    a `vec.dot4` are splat as one i32 and bitcast.

    ```mlir
    %x = vec.load_splat %p[4] : vector<8xi32>
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, I64Attr:$offset);
  let results = (outs Vec_AnyVector:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$ptr), [{
    build($_builder, $_state, type, ptr, uint64_t{0});
  }]>];
  let assemblyFormat = "$ptr `[` $offset `]` attr-dict `:` type($result)";
}

def Vec_GatherOp : Vec_Op<"gather", [MemoryEffects<[MemRead]>]> {
  let summary = "reads one 32-bit lane per index";
  let description = [{
    Lane j is the value at `ptr + offset + index[j] * scale` bytes; indices are signed, scale is 1, 2, 4 or 8.

    ```mlir
    %v = vec.gather %p[0], %index * 4 : vector<8xi32> -> vector<8xf32>
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, I64Attr:$offset, Vec_I32Vector:$index, I64Attr:$scale);
  let results = (outs Vec_WordVector:$result);
  let assemblyFormat = "$ptr `[` $offset `]` `,` $index `*` $scale attr-dict `:` type($index) `->` type($result)";
  let hasVerifier = 1;
}

def Vec_PrefetchResource : Resource<"::cortiq::vec::PrefetchResource">;

def Vec_PrefetchOp : Vec_Op<"prefetch", [MemoryEffects<[MemWrite<Vec_PrefetchResource>]>]> {
  let summary = "asks for a cache line";
  let description = [{
    A hint without other effect; the address need not be readable. The line goes into the second-level cache, with `near`
    into the first.

    ```mlir
    vec.prefetch %p[512]
    vec.prefetch %p[576] near
    ```
  }];
  let arguments = (ins Vec_PtrType:$ptr, I64Attr:$offset, UnitAttr:$near);
  let builders = [OpBuilder<(ins "::mlir::Value":$ptr, "int64_t":$offset, CArg<"bool", "false">:$near), [{
    build($_builder, $_state, ptr, $_builder.getI64IntegerAttr(offset),
          near ? $_builder.getUnitAttr() : ::mlir::UnitAttr());
  }]>];
  let assemblyFormat = "$ptr `[` $offset `]` (`near` $near^)? attr-dict";
}

//===----------------------------------------------------------------------===//
// Lanes: constants, bits, integers
//===----------------------------------------------------------------------===//

def Vec_ConstantOp : Vec_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a constant vector";
  let description = [{
    ```mlir
    %mask = vec.constant dense<15> : vector<32xi8>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Vec_AnyVector:$result);
  let builders = [
    OpBuilder<(ins "::mlir::Type":$type, "double":$value)>, // the value in every lane, whatever the lane type
    OpBuilder<(ins "::mlir::Type":$type, "::llvm::ArrayRef<int64_t>":$values)> // integer lanes, one by one
  ];
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def Vec_BitcastOp : Vec_Op<"bitcast", [Pure]> {
  let summary = "the same bits as lanes of another type";
  let description = [{
    ```mlir
    %b = vec.bitcast %w : vector<8xi32> to vector<32xi8>
    ```
  }];
  let arguments = (ins Vec_AnyVector:$value);
  let results = (outs Vec_AnyVector:$result);
  let assemblyFormat = "$value attr-dict `:` type($value) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

class Vec_Binary<string mnemonic, Type type, string what, list<Trait> traits = []>
    : Vec_Op<mnemonic, [Pure, SameOperandsAndResultType] # traits> {
  let summary = what;
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

class Vec_Unary<string mnemonic, Type type, string what> : Vec_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let summary = what;
  let arguments = (ins type:$value);
  let results = (outs type:$result);
  let assemblyFormat = "$value attr-dict `:` type($result)";
}

class Vec_Shift<string mnemonic, string what> : Vec_Op<mnemonic, [Pure, SameOperandsAndResultType]> {
  let summary = what;
  let description = [{
    ```mlir
    %r = vec.}] # mnemonic # [{ %v, 4 : vector<16xi16>
    ```
  }];
  let arguments = (ins Vec_ShiftVector:$value, I64Attr:$amount);
  let results = (outs Vec_ShiftVector:$result);
  let assemblyFormat = "$value `,` $amount attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Vec_AndOp : Vec_Binary<"and", Vec_IntVector, "bitwise and", [Commutative]> {
  let description = [{
    ```mlir
    %r = vec.and %a, %b : vector<32xi8>
    ```
  }];
}
def Vec_OrOp : Vec_Binary<"or", Vec_IntVector, "bitwise or", [Commutative]> {
  let description = [{
    ```mlir
    %r = vec.or %a, %b : vector<32xi8>
    ```
  }];
}
def Vec_XorOp : Vec_Binary<"xor", Vec_IntVector, "bitwise exclusive or", [Commutative]> {
  let description = [{
    ```mlir
    %r = vec.xor %a, %b : vector<32xi8>
    ```
  }];
}
def Vec_AndNotOp : Vec_Binary<"and_not", Vec_IntVector, "bitwise and with the first operand inverted: ~lhs & rhs"> {
  let description = [{
    ```mlir
    %r = vec.and_not %mask, %b : vector<32xi8>
    ```
  }];
}

def Vec_ShlOp : Vec_Shift<"shl", "shifts each lane left by a constant">;
def Vec_ShrUOp : Vec_Shift<"shr_u", "shifts each lane right by a constant, zeros coming in">;
def Vec_ShrSOp : Vec_Shift<"shr_s", "shifts each lane right by a constant, the sign coming in">;

def Vec_ShrVOp : Vec_Binary<"shr_v", Vec_I32Vector, "shifts each lane right by its own amount, zeros coming in"> {
  let description = [{
    Amounts are unsigned; from 32 on the lane becomes 0.

    ```mlir
    %r = vec.shr_v %v, %amounts : vector<8xi32>
    ```
  }];
}

def Vec_SelectBitsOp : Vec_Op<"select_bits", [Pure, AllTypesMatch<["set", "clear", "result"]>]> {
  let summary = "lanes of one of two vectors, chosen by bits of a third";
  let description = [{
    Lane j is `set[j]` where `word[j]` has one of `bits`, else `clear[j]`.

    ```mlir
    %r = vec.select_bits %word, 4, %set, %clear : vector<16xi32>, vector<16xf32>
    ```
  }];
  let arguments = (ins Vec_I32Vector:$word, I64Attr:$bits, Vec_WordVector:$set, Vec_WordVector:$clear);
  let results = (outs Vec_WordVector:$result);
  let assemblyFormat = "$word `,` $bits `,` $set `,` $clear attr-dict `:` type($word) `,` type($result)";
  let hasVerifier = 1;
}
def Vec_MulBitsOp : Vec_Op<"mul_bits", [Pure, AllTypesMatch<["value", "factor", "result"]>]> {
  let summary = "lane products where a word has certain bits";
  let description = [{
    Lane j is `value[j] * factor[j]` where `word[j]` has one of `bits`, else `value[j]`.

    ```mlir
    %r = vec.mul_bits %word, 2, %value, %factor : vector<16xi32>, vector<16xf32>
    ```
  }];
  let arguments = (ins Vec_I32Vector:$word, I64Attr:$bits, Vec_F32Vector:$value, Vec_F32Vector:$factor);
  let results = (outs Vec_F32Vector:$result);
  let assemblyFormat = "$word `,` $bits `,` $value `,` $factor attr-dict `:` type($word) `,` type($result)";
  let hasVerifier = 1;
}

def Vec_AddOp : Vec_Binary<"add", Vec_AddVector, "lane sums; integers wrap", [Commutative]> {
  let description = [{
    ```mlir
    %r = vec.add %a, %b : vector<8xi32>
    ```
  }];
}
def Vec_SubOp : Vec_Binary<"sub", Vec_AddVector, "lane differences; integers wrap"> {
  let description = [{
    ```mlir
    %r = vec.sub %a, %b : vector<8xi32>
    ```
  }];
}
def Vec_MulOp : Vec_Binary<"mul", Vec_MulVector, "lane products; integers keep the low half", [Commutative]> {
  let description = [{
    ```mlir
    %r = vec.mul %a, %b : vector<8xf32>
    ```
  }];
}
def Vec_AbsOp : Vec_Unary<"abs", Vec_IntVector, "lane magnitudes; the most negative value stays itself"> {
  let description = [{
    ```mlir
    %r = vec.abs %a : vector<32xi8>
    ```
  }];
}
def Vec_SignOp : Vec_Binary<"sign", Vec_I8Vector, "lhs with the sign of rhs: lhs, -lhs (wrapping), or 0 where rhs is 0"> {
  let description = [{
    With `vec.abs` it turns a signed by signed product into the unsigned by signed one that `vec.dot4` wants:
    `abs(w) * sign(x, w) = w * x`.

    ```mlir
    %r = vec.sign %x, %w : vector<32xi8>
    ```
  }];
}
def Vec_Lookup16Op : Vec_Binary<"lookup16", Vec_I8Vector, "bytes chosen from a table of 16"> {
  let description = [{
    `lhs` is the table, repeated in each 128-bit part of the vector; `rhs` holds the indices: lane j of the result is
    byte `rhs[j] & 15` of the same 128-bit part, or 0 when bit 7 of `rhs[j]` is set. Needs at least 128 bits.

    ```mlir
    %levels = vec.lookup16 %table, %codes : vector<32xi8>
    ```
  }];
  let hasVerifier = 1;
}

def Vec_Dot2Op : Vec_Op<"dot2", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "unsigned by signed byte products, summed in pairs to i16";
  let description = [{
    Lane j is `lhs[2j] * rhs[2j] + lhs[2j+1] * rhs[2j+1]` with `lhs` unsigned and `rhs` signed within +-127. `umax` bounds
    `lhs`, `xmax` the magnitudes of `rhs`, and no sum leaves i16 by them: instruction sets that saturate agree with those
    that don't.

    ```mlir
    %p = vec.dot2 %w, %x {umax = 15 : i64} : vector<32xi8> -> vector<16xi16>
    ```
  }];
  let arguments = (ins Vec_I8Vector:$lhs, Vec_I8Vector:$rhs, I64Attr:$umax, DefaultValuedAttr<I64Attr, "127">:$xmax);
  let results = (outs Vec_I16Vector:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, "int64_t":$umax,
                                 CArg<"int64_t", "127">:$xmax)>];
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

def Vec_PairAddOp : Vec_Op<"pair_add", [Pure]> {
  let summary = "sums pairs of signed i16 lanes to i32";
  let description = [{
    ```mlir
    %s = vec.pair_add %p : vector<16xi16> -> vector<8xi32>
    ```
  }];
  let arguments = (ins Vec_I16Vector:$value);
  let results = (outs Vec_I32Vector:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$value)>];
  let assemblyFormat = "$value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Vec_Dot4Op : Vec_Op<"dot4", [Pure, AllTypesMatch<["lhs", "rhs"]>, AllTypesMatch<["acc", "result"]>]> {
  let summary = "adds the sums of four unsigned by signed byte products to i32 lanes";
  let description = [{
    Lane j is `acc[j]` plus the sum of `lhs[4j+n] * rhs[4j+n]` for n in 0..3, exact, with `lhs` unsigned within 0..`umax` and
    `rhs` signed within -128..127. On targets without such an instruction a small `umax` buys the shorter sequence.

    ```mlir
    %n = vec.dot4 %acc, %w, %x {umax = 15 : i64} : vector<8xi32>, vector<32xi8>
    ```
  }];
  let arguments = (ins Vec_I32Vector:$acc, Vec_I8Vector:$lhs, Vec_I8Vector:$rhs, I64Attr:$umax);
  let results = (outs Vec_I32Vector:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$acc, "::mlir::Value":$lhs, "::mlir::Value":$rhs), [{
    build($_builder, $_state, acc, lhs, rhs, uint64_t{255}); // any unsigned byte
  }]>];
  let assemblyFormat = "$acc `,` $lhs `,` $rhs attr-dict `:` type($acc) `,` type($lhs)";
  let hasVerifier = 1;
}

def Vec_MulPairsOp : Vec_Op<"mul_pairs", [Pure, AllTypesMatch<["lhs", "rhs"]>]> {
  let summary = "signed i16 products, summed in pairs to i32 (wrapping)";
  let description = [{
    ```mlir
    %s = vec.mul_pairs %p, %scales : vector<16xi16> -> vector<8xi32>
    ```
  }];
  let arguments = (ins Vec_I16Vector:$lhs, Vec_I16Vector:$rhs);
  let results = (outs Vec_I32Vector:$result);
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs)>];
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Conversions and floats
//===----------------------------------------------------------------------===//

def Vec_ConvertOp : Vec_Op<"convert", [Pure]> {
  let summary = "lane by lane conversion to another type";
  let description = [{
    i32 to f32 and f32 to i32 (both round to nearest even; what i32 can't hold becomes -2^31), f16 to f32, bf16 to f32,
    i8 to i16 or i32, i16 to i32. With `unsigned`, integer lanes narrower than 32 bits are read as unsigned.

    ```mlir
    %f = vec.convert %h : vector<8xf16> to vector<8xf32>
    %w = vec.convert %b unsigned : vector<8xi8> to vector<8xi32>
    ```
  }];
  let arguments = (ins Vec_AnyVector:$value, UnitAttr:$is_unsigned);
  let results = (outs Vec_AnyVector:$result);
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$value, CArg<"bool", "false">:$is_unsigned), [{
    build($_builder, $_state, type, value, is_unsigned ? $_builder.getUnitAttr() : ::mlir::UnitAttr());
  }]>];
  let assemblyFormat = "$value (`unsigned` $is_unsigned^)? attr-dict `:` type($value) `to` type($result)";
  let hasVerifier = 1;
}

def Vec_FmaOp : Vec_Op<"fma", [Pure, SameOperandsAndResultType]> {
  let summary = "a * b + c with one rounding";
  let description = [{
    ```mlir
    %r = vec.fma %a, %b, %c : vector<8xf32>
    ```
  }];
  let arguments = (ins Vec_F32Vector:$a, Vec_F32Vector:$b, Vec_F32Vector:$c);
  let results = (outs Vec_F32Vector:$result);
  let assemblyFormat = "$a `,` $b `,` $c attr-dict `:` type($result)";
}
def Vec_FMinOp : Vec_Binary<"fmin", Vec_F32Vector, "lhs < rhs ? lhs : rhs, so rhs where either is NaN"> {
  let description = [{
    ```mlir
    %r = vec.fmin %a, %b : vector<8xf32>
    ```
  }];
}
def Vec_FMaxOp : Vec_Binary<"fmax", Vec_F32Vector, "lhs > rhs ? lhs : rhs, so rhs where either is NaN"> {
  let description = [{
    ```mlir
    %r = vec.fmax %a, %b : vector<8xf32>
    ```
  }];
}
def Vec_DivOp : Vec_Binary<"div", Vec_F32Vector, "lane quotients, correctly rounded"> {
  let description = [{
    ```mlir
    %r = vec.div %a, %b : vector<8xf32>
    ```
  }];
}
def Vec_ReduceAddOp : Vec_Unary<"reduce_add", Vec_WordVector, "the sum of all lanes, in every lane"> {
  let description = [{
    The order is fixed: the upper half is added to the lower half, lane by lane, until one lane is left.

    ```mlir
    %s = vec.reduce_add %v : vector<8xf32>
    ```
  }];
}

include "ByteOps.td"
include "ProductOps.td"
include "TileOps.td"

#endif
