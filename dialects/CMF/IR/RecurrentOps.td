// Operations with recurrent state: convolutions over time and linear attention. Ops.td includes this file.

#ifndef CORTIQ_CMF_RECURRENT_OPS
#define CORTIQ_CMF_RECURRENT_OPS

// An operation that carries numbers from token to token. `state` numbers its own place among the sequence's recurrent
// states; all of it is zero at the start of a sequence, and a token's result depends on the tokens before it through it
// alone.
class CMF_RecurrentOp<string mnemonic, list<Trait> traits = []>
    : CMF_Op<mnemonic, !listconcat(traits, [MemoryEffects<[MemRead<CMF_SequenceState>,
                                                            MemWrite<CMF_SequenceState>]>])> {
  let results = (outs CMF_Activations:$result);
  code stateDeclaration = [{
    /// Numbers (f32) that the operation keeps from token to token.
    int64_t getStateSize();
  }];
  let extraClassDeclaration = stateDeclaration;
}

def CMF_CausalConvOp : CMF_RecurrentOp<"causal_conv", [AllTypesMatch<["x", "result"]>]> {
  let summary = "a depthwise convolution over time";
  let description = [{
    `y[t][c] = sum over j < K of taps[c][j] * x[t - (K - 1) + j][c]`, zeros before the first token; with `silu` the result
    is `y / (1 + e^-y)`. The state holds the last `K - 1` inputs, the oldest first.

    ```mlir
    %u = cmf.causal_conv %x, %taps {state = 0 : i64, silu} : tensor<?x256xf32>, !cmf.weight<256x4, f16>
    ```
  }];
  let arguments = (ins CMF_Activations:$x, CMF_MatrixWeight:$taps, I64Attr:$state, UnitAttr:$silu);
  let assemblyFormat = "$x `,` $taps attr-dict `:` type($x) `,` qualified(type($taps))";
}

def CMF_ShortConvOp : CMF_RecurrentOp<"short_conv"> {
  let summary = "a convolution between two gates";
  let description = [{
    The input holds `[B | C | X]`, H features each: `s = B * X`, `y[t][c] = C[t][c] * sum over j < K of taps[c][j] *
    s[t - (K - 1) + j][c]`. The state holds the last `K - 1` rows of s.

    ```mlir
    %y = cmf.short_conv %bcx, %taps {state = 0 : i64} : tensor<?x384xf32>, !cmf.weight<128x3, f16> -> tensor<?x128xf32>
    ```
  }];
  let arguments = (ins CMF_Activations:$bcx, CMF_MatrixWeight:$taps, I64Attr:$state);
  let assemblyFormat = "$bcx `,` $taps attr-dict `:` type($bcx) `,` qualified(type($taps)) `->` type($result)";
}

def CMF_GatedDeltaOp : CMF_RecurrentOp<"gated_delta"> {
  let summary = "linear attention by the gated delta rule";
  let description = [{
    `qkv` holds `key_heads` queries and as many keys of `key_dim`, then `value_heads` values of `value_dim`; `z` one gate
    a value, `a` and `b` one number a value head. Value head h uses query and key head `h / (value_heads / key_heads)`,
    or, with `tiled`, `h % key_heads`. Its state is a matrix S of key_dim x value_dim:

    ```
    q' = q / (sqrt(|q|^2 + 1e-6) * sqrt(key_dim)),  k' = k / sqrt(|k|^2 + 1e-6)
    g = exp(-exp(decay[h]) * softplus(a + dt_bias[h])),  beta = sigmoid(b)
    S = g * S;  S = S + k' (x) beta * (v - k'^T S);  o = q'^T S
    y = o / sqrt(mean(o^2) + eps) * norm * silu(z)
    ```

    With `rates` the decay vector holds `-exp(decay)` itself; with `sigmoid_gate` the gate is `sigmoid(z)`.

    ```mlir
    %y = cmf.gated_delta %qkv, %z, %a, %b, %decay, %dt, %norm
        {state = 1 : i64, key_heads = 2 : i64, value_heads = 4 : i64, key_dim = 32 : i64, value_dim = 32 : i64,
         eps = 1.0e-6 : f64}
        : (tensor<?x256xf32>, tensor<?x128xf32>, tensor<?x4xf32>, tensor<?x4xf32>, !cmf.weight<4, f16>,
           !cmf.weight<4, f16>, !cmf.weight<32, f16>) -> tensor<?x128xf32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$qkv,
    CMF_Activations:$z,
    CMF_Activations:$a,
    CMF_Activations:$b,
    CMF_VectorWeight:$decay,
    CMF_VectorWeight:$dt_bias,
    CMF_VectorWeight:$norm,
    I64Attr:$state,
    I64Attr:$key_heads,
    I64Attr:$value_heads,
    I64Attr:$key_dim,
    I64Attr:$value_dim,
    F64Attr:$eps,
    UnitAttr:$tiled,
    UnitAttr:$rates,
    UnitAttr:$sigmoid_gate
  );
  let assemblyFormat = [{
    $qkv `,` $z `,` $a `,` $b `,` $decay `,` $dt_bias `,` $norm attr-dict `:` functional-type(operands, results)
  }];
}

def CMF_KdaOp : CMF_RecurrentOp<"kda"> {
  let summary = "linear attention by the delta rule with a decay a channel";
  let description = [{
    `q`, `k` and `f` have `heads` x `key_dim` features, `v` and `gate` `heads` x `value_dim`, `b` one number a head. A
    head's state is a matrix S of key_dim x value_dim:

    ```
    L[i] = -exp(decay) * softplus(f[i] + dt_bias[i]),  or  lower_bound * sigmoid(exp(decay) * (f[i] + dt_bias[i]))
    S = diag(exp L) S;  S = S + sigmoid(b) * k' (x) (v - k'^T S);  o = q'^T S
    y = o / sqrt(mean(o^2) + eps) * norm * sigmoid(gate)
    ```

    with q' and k' as in `cmf.gated_delta`. The decay vector has a value a head, a channel of the keys, or each channel of
    each head, as its length says (in that order).

    ```mlir
    %y = cmf.kda %q, %k, %v, %f, %b, %gate, %decay, %dt, %norm
        {state = 3 : i64, heads = 2 : i64, key_dim = 8 : i64, value_dim = 8 : i64, eps = 1.0e-6 : f64}
        : (tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x16xf32>, tensor<?x2xf32>, tensor<?x16xf32>,
           !cmf.weight<2, f32>, !cmf.weight<16, f32>, !cmf.weight<8, f32>) -> tensor<?x16xf32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$q,
    CMF_Activations:$k,
    CMF_Activations:$v,
    CMF_Activations:$f,
    CMF_Activations:$b,
    CMF_Activations:$gate,
    CMF_VectorWeight:$decay,
    CMF_VectorWeight:$dt_bias,
    CMF_VectorWeight:$norm,
    I64Attr:$state,
    I64Attr:$heads,
    I64Attr:$key_dim,
    I64Attr:$value_dim,
    F64Attr:$eps,
    OptionalAttr<F64Attr>:$lower_bound
  );
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $f `,` $b `,` $gate `,` $decay `,` $dt_bias `,` $norm attr-dict
    `:` functional-type(operands, results)
  }];
}

def CMF_VmfPhaseOp : CMF_RecurrentOp<"vmf_phase"> {
  let summary = "linear attention on phases";
  let description = [{
    `theta_q` and `theta_k` hold `phases` angles a head, `v` `value_dim` values a head; `gate`, where there is one, a number
    a head. `phi(theta) = [cos theta ; sin theta]`, `d = exp(-exp(decay))` for each feature of phi, `kappa =
    sigmoid(gate)` or 1. A head's state is a matrix S of 2 phases x value_dim:

    ```
    S = d * S + kappa * phi(theta_k) (x) v;  y = phi(theta_q)^T S
    ```

    With `delta`, phi is divided by `sqrt(phases)`, and what the decayed state already gives for the key is taken off the
    value: `P = d * S;  S = P + kappa * phi_k (x) (v - phi_k^T P)`.

    ```mlir
    %y = cmf.vmf_phase %q, %k, %v, %decay {state = 0 : i64, heads = 2 : i64, phases = 4 : i64, value_dim = 8 : i64}
        : (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x16xf32>, !cmf.weight<16, f32>) -> tensor<?x16xf32>
    ```
  }];
  let arguments = (ins
    CMF_Activations:$theta_q,
    CMF_Activations:$theta_k,
    CMF_Activations:$v,
    CMF_VectorWeight:$decay,
    Optional<CMF_Activations>:$gate,
    I64Attr:$state,
    I64Attr:$heads,
    I64Attr:$phases,
    I64Attr:$value_dim,
    UnitAttr:$delta
  );
  let assemblyFormat = [{
    $theta_q `,` $theta_k `,` $v `,` $decay (`gate` `(` $gate^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif
