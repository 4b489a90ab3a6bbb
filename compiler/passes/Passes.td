// The compiler's passes, in the order in which a model meets them. One source file a pass, one test a pass.

#ifndef CORTIQ_PASSES
#define CORTIQ_PASSES

include "mlir/Pass/PassBase.td"

//===--- cmf --------------------------------------------------------------------------------------------------------===//

def CmfVerifyModel : Pass<"cmf-verify-model", "::mlir::ModuleOp"> {
  let summary = "checks that a module is one whole model";
  let description = [{
    Input: any module. Output: the same module, unchanged. Fails with a message unless it has `cmf.model` with the sizes
    of the model, one function `@forward` of type `(tensor<?xi32>) -> tensor<?xVxf32>` with V the vocabulary (two of both
    in a model that guesses the token after the next one, whose block counts as one more layer), and in it for every layer at most one `cmf.attention`, its `layer` below the layer count and below that of no earlier one.
    Stands behind the front ends and between the fusions and the lowering.
  }];
}

def CmfFixTask : Pass<"cmf-fix-task", "::mlir::ModuleOp"> {
  let summary = "makes one task mask part of the model";
  let description = [{
    Input: a model with `cmf.overlay_catalog`, `cmf.mask` attributes and `cmf.layer_gate`, unfused. Output: the same under
    the mask named `task`, which no longer is a choice. Layers that it skips are gone; of gate and up, and of queries,
    keys and values, only rows that count stay (`picks` of `#cmf.rows`), and `cmf.place` brings their results back to the
    width of the product behind them, whose own columns stay. Closed experts' weights are gone; their choice still asks the
    mask, which therefore stays in the catalog. Without a task nothing changes.
  }];
  let options = [Option<"task", "task", "std::string", "\"\"", "name of the mask">];
  let dependentDialects = ["::cortiq::cmf::CMFDialect"];
}

def CmfFuseDequantMatmul : Pass<"cmf-fuse-dequant-matmul", "::mlir::ModuleOp"> {
  let summary = "brings decoding, product and bias of a linear layer together";
  let description = [{
    Input: linear layers as `cmf.dequant`, `cmf.matmul` and perhaps `cmf.bias_add`. Output: each is one
    `cmf.fused_matmul` with one weight. A bias is taken in when nothing else reads the product without it; a
    `cmf.dequant` that something else reads stays.
  }];
}

def CmfFuseQkv : Pass<"cmf-fuse-qkv", "::mlir::ModuleOp"> {
  let summary = "joins the three products that feed one attention";
  let description = [{
    Input: `cmf.attention` whose queries, keys and values come, through `cmf.rms_norm` and `cmf.rope` or directly, from
    three `cmf.fused_matmul` of one weight each with the same input. Output: one `cmf.fused_matmul` with three weights.
    Every weight keeps its codec and its bias. Products of differing inputs, or with a residual, are left alone.
  }];
}

def CmfFuseGateUp : Pass<"cmf-fuse-gate-up", "::mlir::ModuleOp"> {
  let summary = "joins the two products that feed one gate";
  let description = [{
    Input: `cmf.glu` of two `cmf.fused_matmul` of one weight each with the same input. Output: one `cmf.fused_matmul`
    with two weights, the gate first. Every weight keeps its codec and its bias.
  }];
}

def CmfFuseMoe : Pass<"cmf-fuse-moe", "::mlir::ModuleOp"> {
  let summary = "joins router, choice, experts, shared expert and residual of a layer";
  let description = [{
    Input: `cmf.moe_experts` of the choice of a `cmf.moe_route` whose logits are a `cmf.fused_matmul` of one weight; nothing
    else reads logits or choice. Output: one `cmf.fused_moe`. A sum with a gated block of the same input (the shared
    expert, behind a `cmf.gate` of one value a token or not) is taken in, then one further sum as residual. Runs before
    the other fusions of sums and gates, which would take their parts. Low-rank weights are left alone.
  }];
}

def CmfFuseNormResidual : Pass<"cmf-fuse-norm-residual", "::mlir::ModuleOp"> {
  let summary = "takes residual additions into products and norms";
  let description = [{
    Input: `cmf.add`. Output: where a summand is a `cmf.fused_matmul` of one weight that nothing else reads, the other
    summand became its residual; where that does not apply and a `cmf.rms_norm` of whole rows reads the sum (sandwich
    norms), both became `cmf.add_rms_norm`. The first form is preferred: the sum is then free.
  }];
}

def CmfSplitLowRank : Pass<"cmf-split-low-rank", "::mlir::ModuleOp"> {
  let summary = "multiplies by the factors of low-rank weights, one after the other";
  let description = [{
    Input: fused products; each blr weight of one has a source with `low_rank`. Output: no `cmf.fused_matmul` reads a blr
    weight. Instead x goes through the blr_v factors of all paths, together with what else the product multiplied by, and
    each result through its blr_u factor. The first path adds bias and residual, a second one the sum of the first.
    An embedding stays whole.
  }];
  let dependentDialects = ["::cortiq::cmf::CMFDialect"];
}

//===-- From the graph to the program ----------------------------------------------------------------------------===//

def CmfSpecialise : Pass<"cmf-specialise", "::mlir::ModuleOp"> {
  let summary = "fixes target and numerics";
  let description = [{
    Sets `cmf.target` from the target table and `cmf.numerics` on the module, and `arm` on every `cmf.fused_matmul` and `cmf.fused_moe`. An
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
    A matrix that a `cmf.fused_matmul` or `cmf.fused_moe` reads gets layout `r16` if its codec has that form for its row length, every other
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

def KernelChoosePath : Pass<"kernel-choose-path", "::mlir::ModuleOp"> {
  let summary = "decides how products with many tokens are made";
  let description = [{
    Sets `kernel.path` on every `kernel.call` and `kernel.expert`: whether many tokens are served by the fused kernels of few
    tokens, or by one that decodes a row group once for all of them, by the costs that were measured for codec, arm and
    target. `path` forces it: words separated by commas, each `auto`, `fused`, `materialised` or `tiles`, or
    `PATTERN=word` for the weights whose names match (`*` and `?` stand for letters); the last that applies counts. `room` is what a worker's
    memory may take of a decoded row group; 0 stands for the larger of the target's second-level cache and 1 MiB. With
    `bf16`, matrices of the fast arm whose path is not forced to fused are multiplied on tiles of bf16 for the tokens of
    prompts, however few, where the target has those (feature `amx_bf16`), and all buffers of `q8a` become `q8a_bf16`.

    Input: a program with `cmf.target`. Output: the same with all paths set.
  }];
  let options = [
    Option<"path", "path", "std::string", "\"auto\"", "auto, fused, materialised or tiles; PATTERN=word for some weights">,
    Option<"room", "room", "uint64_t", "0", "bytes of a worker's memory for a decoded row group">,
    Option<"bf16", "bf16", "bool", "false", "prompts on tiles of bf16">];
  let dependentDialects = ["::cortiq::kernel::KernelDialect"];
}

def KernelDedupe : Pass<"kernel-dedupe", "::mlir::ModuleOp"> {
  let summary = "derives the kernels to generate, each once";
  let description = [{
    For every `kernel.call` and every token tile of the target that its `kernel.path` leaves, states the kernels for full groups of 16 rows and for a short last
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
