// Attributes and enumerations of the cmf dialect.

#ifndef CORTIQ_CMF_ATTRS
#define CORTIQ_CMF_ATTRS

include "dialects/CMF/IR/Base.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class CMF_Attr<string name, string attrMnemonic> : AttrDef<CMF_Dialect, name> {
  let mnemonic = attrMnemonic;
}

class CMF_EnumAttr<I32EnumAttr enumInfo, string mnemonic> : EnumAttr<CMF_Dialect, enumInfo, mnemonic> {
  let assemblyFormat = "`<` $value `>`";
}

//===--- Enumerations -----------------------------------------------------------------------------------------------===//

def CMF_Activation : I32EnumAttr<"Activation", "the activation of a gated feed-forward block", [
    I32EnumAttrCase<"silu", 0>,      // x / (1 + e^-x)
    I32EnumAttrCase<"gelu_tanh", 1>, // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
    I32EnumAttrCase<"gelu", 2>,      // 0.5 x (1 + erf(x / sqrt 2))
    I32EnumAttrCase<"relu", 3>,
    I32EnumAttrCase<"situ", 4>,       // alpha tanh(x / alpha) sigmoid(x); up: limit tanh(up / limit) where limit > 0
    I32EnumAttrCase<"swigluoai", 5>,  // of x = min(x, limit), up = clamp(up, -limit, limit): x sigmoid(alpha x) (up + 1)
  ]> {
  let cppNamespace = "::cortiq::cmf";
  let genSpecializedAttr = 0;
}
def CMF_ActivationAttr : CMF_EnumAttr<CMF_Activation, "activation">;

def CMF_Arm : I32EnumAttr<"Arm", "how activations enter a matrix product", [
    I32EnumAttrCase<"fast", 0>,  // as int8 in groups of 32
    I32EnumAttrCase<"exact", 1>, // as f32
  ]> {
  let cppNamespace = "::cortiq::cmf";
  let genSpecializedAttr = 0;
}
def CMF_ArmAttr : CMF_EnumAttr<CMF_Arm, "arm">;

def CMF_Layout : I32EnumAttr<"Layout", "how the artifact stores a weight", [
    I32EnumAttrCase<"verbatim", 0>, // the payload as the file has it
    I32EnumAttrCase<"r16", 1>,      // groups of 16 rows, interleaved
  ]> {
  let cppNamespace = "::cortiq::cmf";
  let genSpecializedAttr = 0;
}
def CMF_LayoutAttr : CMF_EnumAttr<CMF_Layout, "layout">;

def CMF_MaskKind : I32EnumAttr<"MaskKind", "what the bits of a mask stand for", [
    I32EnumAttrCase<"ffn", 0>,   // neurons of a feed-forward block
    I32EnumAttrCase<"heads", 1>, // query heads
    I32EnumAttrCase<"experts", 2>,
  ]> {
  let cppNamespace = "::cortiq::cmf";
  let genSpecializedAttr = 0;
}

//===--- Where a weight's bytes are ---------------------------------------------------------------------------------===//

def CMF_LowRankAttr : CMF_Attr<"LowRank", "low_rank"> {
  let summary = "what a low-rank payload (blr) is made of, and which factor of it a weight is";
  let description = [{
    The payload sums `paths` products of a matrix [rows x rank] and one [rank x columns]. `path` counts them from 1: the
    weight, of codec blr_u or blr_v, is a factor of that path. 0, the default: the weight is the whole matrix.

    ```mlir
    #cmf.low_rank<paths = 2, rank = 64>
    #cmf.low_rank<paths = 2, rank = 64, path = 1>
    ```
  }];
  let parameters = (ins "int64_t":$paths, "int64_t":$rank, DefaultValuedParameter<"int64_t", "0">:$path);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def CMF_SourceAttr : CMF_Attr<"Source", "source"> {
  let summary = "the bytes of a weight in the model file";
  let description = [{
    The whole payload of the file's tensor: `bytes` bytes from `offset` of part `file` (0 for a model of one file). A
    weight that takes only some of the tensor's rows says so in `#cmf.rows`. `low_rank` is there when the payload is blr.

    ```mlir
    #cmf.source<file = 0, offset = 4096, bytes = 20736>
    ```
  }];
  let parameters = (ins "uint32_t":$file, "uint64_t":$offset, "uint64_t":$bytes,
      OptionalParameter<"::cortiq::cmf::LowRankAttr">:$low_rank);
  let builders = [AttrBuilder<(ins "uint32_t":$file, "uint64_t":$offset, "uint64_t":$bytes), [{
    return $_get($_ctxt, file, offset, bytes, LowRankAttr());
  }]>];
  let assemblyFormat = "`<` struct(params) `>`";
}

def CMF_RowsAttr : CMF_Attr<"Rows", "rows"> {
  let summary = "which rows of the file's tensor a weight consists of, and in what order";
  let description = [{
    The file's tensor has `of` rows. Row `r` of the weight is row `first + map(r)` of it. `map` is made of two steps, each
    the identity when its parameters are absent. With `deinterleave = d` each head of `d` rows goes from neighbouring
    rotary pairs to half-split ones: row `s*d/2 + i` of a head comes from row `2i + s`. With `take = t, period = p` only
    the first `t` rows of every `p` are taken: row `r` comes from row `r / t * p + r % t`, `r` being the result of the
    first step (`d` divides `t` when both are there). With `picks` row `r` is row `picks[r]` of what the others describe.
    Whole rows move, so their bytes stay as they are. For a bias vector a "row" is one value.

    ```mlir
    #cmf.rows<of = 960, first = 576, deinterleave = 64>
    #cmf.rows<of = 3072, first = 1536>
    #cmf.rows<of = 3072, first = 128, deinterleave = 64, take = 64, period = 192>
    #cmf.rows<of = 8, picks = [0, 3, 4]>
    ```
  }];
  let parameters = (ins
    "int64_t":$of,
    DefaultValuedParameter<"int64_t", "0">:$first,
    DefaultValuedParameter<"int64_t", "0">:$deinterleave,
    DefaultValuedParameter<"int64_t", "0">:$take,
    DefaultValuedParameter<"int64_t", "0">:$period,
    OptionalParameter<"::mlir::DenseI64ArrayAttr">:$picks
  );
  let builders = [AttrBuilder<(ins "int64_t":$of, CArg<"int64_t", "0">:$first, CArg<"int64_t", "0">:$deinterleave,
                                   CArg<"int64_t", "0">:$take, CArg<"int64_t", "0">:$period), [{
    return $_get($_ctxt, of, first, deinterleave, take, period, ::mlir::DenseI64ArrayAttr());
  }]>];
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The row of the file's tensor that row `row` of the weight comes from.
    int64_t sourceRow(int64_t row) const;
  }];
}

//===--- Task masks -------------------------------------------------------------------------------------------------===//

def CMF_MaskAttr : CMF_Attr<"Mask", "mask"> {
  let summary = "which bits of a task mask apply to a result";
  let description = [{
    The operation that carries it as `cmf.mask` gives zero in columns whose bit is clear in the mask that is in force.
    Column `c` has bit `first + c / group` of the row of `layer`: `ffn` bits stand for neurons, `heads` bits for query
    heads. `experts` stands on the choice of experts: those whose bit is clear are not chosen. With `group = 0` one bit, `first`, decides for all columns.

    ```mlir
    %a = cmf.glu silu(%gate, %up) {cmf.mask = #cmf.mask<ffn, layer = 3, first = 0, group = 1>} : tensor<?x1536xf32>
    ```
  }];
  let parameters = (ins EnumParameter<CMF_MaskKind>:$kind, "int64_t":$layer, "int64_t":$first, "int64_t":$group);
  let assemblyFormat = "`<` $kind `,` struct($layer, $first, $group) `>`";
}

//===--- Rotary embedding -------------------------------------------------------------------------------------------===//

def CMF_RopeAttr : CMF_Attr<"Rope", "rope"> {
  let summary = "a table of rotary frequencies";
  let description = [{
    One inverse frequency a rotated pair; the angle of pair `i` at position `p` is `p * inverse_frequencies[i]`, in f32.
    Cosine and sine are multiplied by `magnitude` (1 unless YaRN asks for more). Every scaling (linear, YaRN, frequency
    factors) is already inside the numbers.

    ```mlir
    #cmf.rope<inverse_frequencies = array<f32: 1.0, 0.1>, magnitude = 1.0 : f32>
    ```
  }];
  let parameters = (ins "::mlir::DenseF32ArrayAttr":$inverse_frequencies, "::mlir::FloatAttr":$magnitude);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

//===--- The machine ------------------------------------------------------------------------------------------------===//

def CMF_TargetAttr : CMF_Attr<"Target", "target"> {
  let summary = "the machine that a module is specialised for";
  let description = [{
    Facts about a processor, as data: passes read them here and never ask the host.

    ```mlir
    #cmf.target<name = "x86-64-v3", features = ["avx2", "fma", "f16c"], vector_bytes = 32,
                token_tiles = array<i64: 1, 2, 4, 8>, l1 = 32768, l2 = 1048576, cores = 4>
    ```
  }];
  let parameters = (ins
    "::mlir::StringAttr":$name,
    "::mlir::ArrayAttr":$features,
    "int64_t":$vector_bytes,
    "::mlir::DenseI64ArrayAttr":$token_tiles,
    "int64_t":$l1,
    "int64_t":$l2,
    "int64_t":$cores
  );
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    bool hasFeature(::llvm::StringRef feature) const;
  }];
}

#endif
