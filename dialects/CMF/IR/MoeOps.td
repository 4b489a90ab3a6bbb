// Mixture of experts in the cmf dialect; included at the end of Ops.td.

#ifndef CORTIQ_CMF_MOE_OPS
#define CORTIQ_CMF_MOE_OPS

def CMF_Scoring : I32EnumAttr<"Scoring", "how router logits become scores", [
    I32EnumAttrCase<"softmax", 0>,          // over all experts
    I32EnumAttrCase<"sigmoid", 1>,          // 1 / (1 + e^-x)
    I32EnumAttrCase<"softmax_selected", 2>, // the logits themselves; a softmax over the chosen ones gives the weights
    I32EnumAttrCase<"sqrt_softplus", 3>,    // sqrt(ln(1 + e^x))
  ]> {
  let cppNamespace = "::cortiq::cmf";
  let genSpecializedAttr = 0;
}

def CMF_RoutingAttr : CMF_Attr<"Routing", "routing"> {
  let summary = "how experts are chosen and weighed";
  let description = [{
    Every token keeps `top_k` experts, those of the largest score plus selection bias; of equal ones the lower number.
    With `groups > 1` the experts form so many groups of consecutive numbers, and only those of the `groups_used` best
    groups may be chosen; a group's score is the sum of its two best (biased) scores.

    The weight of a chosen expert is its score without the bias. With `norm_epsilon` the weights of a token are divided by
    their sum plus that number, with `norm_minimum` by their sum or that number, whichever is larger; with neither they
    stay. Then they are multiplied by `scale`.

    ```mlir
    #cmf.routing<top_k = 8, scoring = softmax, norm_epsilon = 0.0>
    #cmf.routing<top_k = 8, scoring = sigmoid, norm_minimum = 6.1e-05, scale = 2.5, groups = 8, groups_used = 4>
    ```
  }];
  let parameters = (ins
    "int64_t":$top_k,
    EnumParameter<CMF_Scoring>:$scoring,
    OptionalParameter<"::mlir::FloatAttr">:$norm_epsilon,
    OptionalParameter<"::mlir::FloatAttr">:$norm_minimum,
    OptionalParameter<"::mlir::FloatAttr">:$scale,
    DefaultValuedParameter<"int64_t", "1">:$groups,
    DefaultValuedParameter<"int64_t", "1">:$groups_used
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The factor of all weights.
    double getFactor() const { return getScale() ? getScale().getValueAsDouble() : 1.0; }
  }];
}

def CMF_ExpertIds : Type<And<[RankedTensorOf<[I32]>.predicate, HasAnyRankOfPred<[2]>]>,
                         "tokens x choices tensor of i32", "::mlir::RankedTensorType">;

def CMF_MoeRouteOp : CMF_Op<"moe_route", [Pure, AttrSizedOperandSegments]> {
  let summary = "chooses the experts of every token";
  let description = [{
    `logits` has one feature an expert. The results list, for every token, its experts by falling biased score, and their
    weights. `bias` (one value an expert) counts for the choice only; `expert_scales` multiplies the finished weights. Under
    a task mask (`cmf.mask`) closed experts are left out of the choice, not of the scores; where fewer than `top_k` are
    open, the rest of the choices have weight 0.

    ```mlir
    %ids, %weights = cmf.moe_route %logits bias(%b) {routing = #cmf.routing<top_k = 8, scoring = sigmoid, norm_epsilon = 1.0e-06>}
        : (tensor<?x128xf32>, !cmf.weight<128, f32>) -> (tensor<?x8xi32>, tensor<?x8xf32>)
    ```
  }];
  let arguments = (ins
    CMF_Activations:$logits,
    Optional<CMF_VectorWeight>:$bias,
    Optional<CMF_VectorWeight>:$expert_scales,
    CMF_RoutingAttr:$routing
  );
  let results = (outs CMF_ExpertIds:$ids, CMF_Activations:$weights);
  let assemblyFormat = [{
    $logits (`bias` `(` $bias^ `)`)? (`scales` `(` $expert_scales^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

def CMF_MoeExpertsOp
    : CMF_Op<"moe_experts", [Pure, AttrSizedOperandSegments, AllTypesMatch<["x", "result"]>]> {
  let summary = "the chosen experts of every token, weighed and added";
  let description = [{
    `result[t] = sum over j of weights[t][j] * down_e(activation(gate_e(x[t])) * up_e(x[t]))` with `e = ids[t][j]`, added in
    the order of `j`. Each expert has its own codecs and its own width; biases are there for all experts or for none.
    `alpha` and `limit` are the numbers of an activation that has some, as for `cmf.glu`.

    ```mlir
    %y = cmf.moe_experts %x, %ids, %weights gate(%g0, %g1) up(%u0, %u1) down(%d0, %d1) {activation = #cmf.activation<silu>}
        : (tensor<?x64xf32>, tensor<?x2xi32>, tensor<?x2xf32>, !cmf.weight<32x64, q4_0>, …) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$x,
    CMF_ExpertIds:$ids,
    CMF_Activations:$weights,
    Variadic<CMF_MatrixWeight>:$gates,
    Variadic<CMF_MatrixWeight>:$ups,
    Variadic<CMF_MatrixWeight>:$downs,
    Variadic<CMF_VectorWeight>:$gate_biases,
    Variadic<CMF_VectorWeight>:$up_biases,
    Variadic<CMF_VectorWeight>:$down_biases,
    CMF_ActivationAttr:$activation,
    OptionalAttr<F64Attr>:$alpha,
    OptionalAttr<F64Attr>:$limit
  );
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = [{
    $x `,` $ids `,` $weights `gate` `(` $gates `)` `up` `(` $ups `)` `down` `(` $downs `)`
    (`gate_biases` `(` $gate_biases^ `)`)? (`up_biases` `(` $up_biases^ `)`)? (`down_biases` `(` $down_biases^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

def CMF_FusedMoeOp
    : CMF_Op<"fused_moe", [Pure, AttrSizedOperandSegments, AllTypesMatch<["x", "result"]>]> {
  let summary = "the expert stack of one layer: router, experts, shared expert, residual";
  let description = [{
    `cmf.moe_route` on `router_x * router^T [+ router_bias]`, or on `router_x` itself where there is no router, then `cmf.moe_experts` on `x`. With `shared` (gate, up, down)
    the shared expert of `x` is added, multiplied by `sigmoid(shared_gate * x)` where that weight is there; then the
    `residual`, where there is one. Router and shared gate always read f32 activations. `arm` is set by `cmf-specialise`.

    ```mlir
    %h = cmf.fused_moe %x route(%x) by(%r) gate(%g0, %g1) up(%u0, %u1) down(%d0, %d1) residual(%h0)
        {activation = #cmf.activation<silu>, routing = #cmf.routing<top_k = 1, scoring = softmax>}
        : (tensor<?x64xf32>, tensor<?x64xf32>, !cmf.weight<2x64, f32>, …) -> tensor<?x64xf32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$x,
    CMF_Activations:$router_x,
    Optional<CMF_MatrixWeight>:$router,
    Optional<CMF_VectorWeight>:$router_bias,
    Optional<CMF_VectorWeight>:$bias,
    Optional<CMF_VectorWeight>:$expert_scales,
    Variadic<CMF_MatrixWeight>:$gates,
    Variadic<CMF_MatrixWeight>:$ups,
    Variadic<CMF_MatrixWeight>:$downs,
    Variadic<CMF_VectorWeight>:$gate_biases,
    Variadic<CMF_VectorWeight>:$up_biases,
    Variadic<CMF_VectorWeight>:$down_biases,
    Variadic<CMF_MatrixWeight>:$shared,
    Optional<CMF_MatrixWeight>:$shared_gate,
    Optional<CMF_Activations>:$residual,
    CMF_ActivationAttr:$activation,
    CMF_RoutingAttr:$routing,
    OptionalAttr<CMF_ArmAttr>:$arm,
    OptionalAttr<F64Attr>:$alpha,
    OptionalAttr<F64Attr>:$limit
  );
  let results = (outs CMF_Activations:$result);
  let assemblyFormat = [{
    $x `route` `(` $router_x `)` (`by` `(` $router^ `)`)? (`router_bias` `(` $router_bias^ `)`)? (`bias` `(` $bias^ `)`)?
    (`scales` `(` $expert_scales^ `)`)? `gate` `(` $gates `)` `up` `(` $ups `)` `down` `(` $downs `)`
    (`gate_biases` `(` $gate_biases^ `)`)? (`up_biases` `(` $up_biases^ `)`)? (`down_biases` `(` $down_biases^ `)`)?
    (`shared` `(` $shared^ `)`)? (`shared_gate` `(` $shared_gate^ `)`)? (`residual` `(` $residual^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
}

#endif
