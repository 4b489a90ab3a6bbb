// The vec dialect: what one CPU kernel does, written once for every instruction set.

#ifndef CORTIQ_VEC_BASE_TD
#define CORTIQ_VEC_BASE_TD

include "mlir/IR/OpBase.td"

def Vec_Dialect : Dialect {
  let name = "vec";
  let cppNamespace = "::cortiq::vec";
  let summary = "Straight-line vector code and counted loops: the inside of one CPU kernel";
  let description = [{
    A `vec.kernel` is a function of one pointer (the argument block of `formats/artifact/kernel_abi.h`) that computes with
    builtin vectors of 8, 16 and 32-bit lanes. Values are virtual: each instruction set has a selector that maps an op
    to its instructions, and all share the register allocator. An op means the same on every target; what a target
    can't hold in one register it refuses. A vector's width is its type: the target's full width, or a half, a quarter
    or an eighth of it for narrow loads that feed a `vec.convert`.
  }];
  let useDefaultTypePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

class Vec_Op<string mnemonic, list<Trait> traits = []> : Op<Vec_Dialect, mnemonic, traits>;

#endif
