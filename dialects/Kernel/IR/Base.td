// The kernel dialect itself.

#ifndef CORTIQ_KERNEL_BASE
#define CORTIQ_KERNEL_BASE

include "mlir/IR/OpBase.td"

def Kernel_Dialect : Dialect {
  let name = "kernel";
  let cppNamespace = "::cortiq::kernel";
  let summary = "the program of an artifact: resolved kernel calls on a static arena";
  let description = [{
    A module of this dialect holds what the artifact's program holds, one operation for one record of its schema:

    * tables, each a list of symbols whose order is the index the artifact uses: `kernel.weight`, `kernel.define` (the
      generated kernels), `kernel.kv_layer`, `kernel.rope_table`;
    * one `kernel.program`: buffers of the arena (`kernel.alloc`), and stages (`kernel.stage`) of calls that need no
      barrier between them. Every call works on all tokens of one batch.

    Buffers are memory: a call reads and writes them, and says so through its memory effects, from which the passes
    derive order and live ranges.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

#endif
