#ifndef CORTIQ_VEC_TYPES_TD
#define CORTIQ_VEC_TYPES_TD

include "Base.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"

def Vec_PtrType : TypeDef<Vec_Dialect, "Ptr"> {
  let mnemonic = "ptr";
  let summary = "an address";
  let description = [{A byte address. Where memory is aligned is a matter of the kernel's contract; every load and store
    accepts any address.}];
}

/// A 1-D vector of 32 to 512 bits of the lane types in `lanes`.
class Vec_VectorOf<list<Type> lanes, string what>
    : Type<And<[VectorOfRankAndType<[1], lanes>.predicate, CPred<"::cortiq::vec::isRegisterVector($_self)">]>,
           "vector of 32, 64, 128, 256 or 512 bits of " # what # " lanes", "::mlir::VectorType">;

def Vec_AnyVector : Vec_VectorOf<[I8, I16, I32, F16, BF16, F32], "i8, i16, i32, f16, bf16 or f32">;
def Vec_IntVector : Vec_VectorOf<[I8, I16, I32], "i8, i16 or i32">;
def Vec_I8Vector : Vec_VectorOf<[I8], "i8">;
def Vec_I16Vector : Vec_VectorOf<[I16], "i16">;
def Vec_I32Vector : Vec_VectorOf<[I32], "i32">;
def Vec_ShiftVector : Vec_VectorOf<[I16, I32], "i16 or i32">;
def Vec_F32Vector : Vec_VectorOf<[F32], "f32">;
def Vec_AddVector : Vec_VectorOf<[I8, I16, I32, F32], "i8, i16, i32 or f32">;
def Vec_MulVector : Vec_VectorOf<[I16, I32, F32], "i16, i32 or f32">;
def Vec_WordVector : Vec_VectorOf<[I32, F32], "i32 or f32">;

def Vec_AnyValue : AnyTypeOf<[Vec_AnyVector, Vec_PtrType, Index], "a vector, a pointer or an index">;

#endif
