// The cmf dialect itself: its name, what it is for, and the resource that attention has effects on.

#ifndef CORTIQ_CMF_BASE
#define CORTIQ_CMF_BASE

include "mlir/IR/DialectBase.td"
include "mlir/IR/OpBase.td"

def CMF_Dialect : Dialect {
  let name = "cmf";
  let cppNamespace = "::cortiq::cmf";
  let summary = "A quantized decoder-only language model as a graph of the model's own words";
  let description = [{
    A module holds one model. Its one function

    ```mlir
    func.func @forward(%ids: tensor<?xi32>) -> tensor<?x49152xf32>
    ```

    takes a batch of tokens at consecutive positions and gives one row of logits a token. Values are `tokens x features`
    tensors of f32. Weights stay in the model file: `cmf.weight` names one, and its type tells shape and codec. The keys
    and values of earlier batches are implicit state, one cache a layer, which `cmf.attention` reads and extends; a
    module is therefore run in the order of its operations.

    The module carries

    * `cmf.model`: a dictionary that describes the model (`architecture`, `name`, `hidden`, `layers`, `vocab`,
      `trained_context`);
    * `cmf.overlay_catalog`: a dictionary of its skills and task masks, where it has some (OverlayCatalog.h);
    * `cmf.target` (`#cmf.target`) and `cmf.numerics` (`"fast"` or `"exact"`) once it has been specialised.

    Operations whose result a task mask cuts carry `cmf.mask` (`#cmf.mask`).

    A model comes with `cmf.dequant` and `cmf.matmul` apart; the `cmf-fuse-*` passes bring them together in
    `cmf.fused_matmul`, the only form that is lowered.
  }];
  let dependentDialects = ["::mlir::func::FuncDialect"];
  let extraClassDeclaration = [{
    void registerTypes();
    void registerAttrs();
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
}

#endif
