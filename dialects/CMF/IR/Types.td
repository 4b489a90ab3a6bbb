// Types of the cmf dialect, and the type constraints of its operands.

#ifndef CORTIQ_CMF_TYPES
#define CORTIQ_CMF_TYPES

include "dialects/CMF/IR/Base.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinTypeInterfaces.td"
include "mlir/IR/CommonTypeConstraints.td"

def CMF_WeightType : TypeDef<CMF_Dialect, "Weight"> {
  let mnemonic = "weight";
  let summary = "a weight of the model, encoded as its file has it";
  let description = [{
    A matrix `rows x cols` (a linear layer that takes `cols` features and gives `rows`) or a vector, in one codec of the
    codec table. The shape must be one the codec permits: most codecs want rows of whole blocks.

    ```mlir
    !cmf.weight<576x1536, q4_k>
    !cmf.weight<576, f32>
    ```
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t", "one or two positive dimensions, outermost first">:$shape,
    "::cortiq::formats::CodecId":$codecId
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The codec's row in the one codec table.
    const ::cortiq::formats::Codec &getCodec() const;
    bool isMatrix() const { return getShape().size() == 2; }
    /// Rows of a matrix; 1 for a vector, whose values are one row.
    int64_t getRows() const { return isMatrix() ? getShape()[0] : 1; }
    /// Values a row.
    int64_t getCols() const { return getShape().back(); }
  }];
}

// tokens x features; the token count is free, the feature count is not.
def CMF_Activations : Type<
    And<[RankedTensorOf<[F32]>.predicate, HasAnyRankOfPred<[2]>,
         CPred<"!::llvm::cast<::mlir::ShapedType>($_self).isDynamicDim(1)">]>,
    "tokens x features tensor of f32, the features a fixed number", "::mlir::RankedTensorType">;

def CMF_DecodedMatrix : Type<
    And<[RankedTensorOf<[F32]>.predicate, HasAnyRankOfPred<[2]>,
         CPred<"::llvm::cast<::mlir::ShapedType>($_self).hasStaticShape()">]>,
    "rows x cols tensor of f32 of fixed shape", "::mlir::RankedTensorType">;

def CMF_TokenIds : 1DTensorOf<[I32]>;

def CMF_AnyWeight : Type<CPred<"::llvm::isa<::cortiq::cmf::WeightType>($_self)">, "weight",
                         "::cortiq::cmf::WeightType">;
def CMF_MatrixWeight : Type<
    And<[CMF_AnyWeight.predicate, CPred<"::llvm::cast<::cortiq::cmf::WeightType>($_self).isMatrix()">]>,
    "weight matrix", "::cortiq::cmf::WeightType">;
def CMF_VectorWeight : Type<
    And<[CMF_AnyWeight.predicate, CPred<"!::llvm::cast<::cortiq::cmf::WeightType>($_self).isMatrix()">]>,
    "weight vector", "::cortiq::cmf::WeightType">;

#endif
