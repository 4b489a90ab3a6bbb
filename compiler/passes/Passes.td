// Every pass of the compiler. One pass, one source file, one test under test/lit/passes.

#ifndef CORTIQ_PASSES
#define CORTIQ_PASSES

include "mlir/Pass/PassBase.td"

//===-- From the graph to the program ----------------------------------------------------------------------------===//

def CmfSpecialise : Pass<"cmf-specialise", "::mlir::ModuleOp"> {
  let summary = "fixes target and numerics";
  let description = [{
    Sets `cmf.target` from the target table and `cmf.numerics` on the module, and `arm` on every `cmf.fused_matmul`. An
    empty option keeps the attribute that the module has already.

    Input: a model in the cmf dialect. Output: the same with both module attributes and all arms set.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"\"", "name of a target of the table">,
    Option<"numerics", "numerics", "std::string", "\"\"", "fast or exact">];
  let dependentDialects = ["::cortiq::cmf::CMFDialect"];
}

def CmfChooseLayout : Pass<"cmf-choose-layout", "::mlir::ModuleOp"> {
  let summary = "decides how the artifact stores each weight";
  let description = [{
    A matrix that a `cmf.fused_matmul` reads gets layout `r16` if its codec has that form for its row length, every other
    weight stays `verbatim`. Weights that take the same rows of the same payload become one, so that an embedding tied to
    the head is stored once, in the head's layout.

    Input: a model whose dequants are fused. Output: every `cmf.weight` has a layout.
  }];
  let dependentDialects = ["::cortiq::cmf::CMFDialect"];
}

def CmfToKernel : Pass<"cmf-to-kernel", "::mlir::ModuleOp"> {
  let summary = "lowers the graph to a program on buffers";
  let description = [{
    Replaces `@forward` by the tables and the program of the kernel dialect. Every operation of the program gets a stage of its own;
    buffers are not placed yet. Norms, gates and attention write quantized activations themselves where a matrix
    product reads them; `kernel.quantize` stands where the producer cannot. Rotation and norms of query, key and value heads
    become part of `kernel.attention_prep`; scale and cap of the logits become `kernel.logits`. Stages after the last
    attention are marked `head`: no later token depends on what they compute.

    Input: a specialised model with layouts. Output: no operation of the cmf dialect is left.
  }];
  let dependentDialects = ["::cortiq::kernel::KernelDialect"];
}

//===-- On the program -------------------------------------------------------------------------------------------===//

def KernelMergeStages : Pass<"kernel-merge-stages", "::mlir::ModuleOp"> {
  let summary = "lets calls share a stage when none depends on another";
  let description = [{
    Moves every call into the earliest stage (of the same `head` mark) that comes after all calls it depends on, as their memory effects
    tell. Each stage costs a barrier.

    Input: a program whose buffers are not placed yet. Output: the same calls in as few stages as their dependences allow.
  }];
  let dependentDialects = ["::cortiq::kernel::KernelDialect"];
}

def KernelPlanMemory : Pass<"kernel-plan-memory", "::mlir::ModuleOp"> {
  let summary = "places the buffers in the arena";
  let description = [{
    A buffer is alive from the first to the last stage that touches it. Buffers are placed by falling size at the lowest
    multiple of 64 where nothing that is alive at the same time stands. All sizes are bytes a token, so the plan holds for
    every batch limit.

    Input: a program in its final order of stages. Output: every `kernel.alloc` has an offset, the program its
    `arena_bytes_per_token`.
  }];
  let dependentDialects = ["::cortiq::kernel::KernelDialect"];
}

def KernelDedupe : Pass<"kernel-dedupe", "::mlir::ModuleOp"> {
  let summary = "derives the kernels to generate, each once";
  let description = [{
    For every `kernel.call` and every token tile of the target, states the kernels for full groups of 16 rows and for a short last
    group, and declares each distinct spec once with `kernel.define`, under its name of the kernel grammar.

    Input: a program with `cmf.target`. Output: every call lists its kernels; unused kernels are gone.
  }];
  let dependentDialects = ["::cortiq::kernel::KernelDialect"];
}

def KernelVerifyProgram : Pass<"kernel-verify-program", "::mlir::ModuleOp"> {
  let summary = "checks what single operations cannot see";
  let description = [{
    No call of a stage touches what another of the same stage writes; every buffer is written before it is read; logits are written; buffers
    alive together do not overlap; the arena holds them all; every call lists its kernels, and every kernel carries the name of its
    spec. Changes nothing.

    Input: a finished program. Output: the same, or an error.
  }];
}

#endif
