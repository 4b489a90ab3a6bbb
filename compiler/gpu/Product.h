#pragma once

// What the dispatches of all products with matrices have in common.

#include <span>
#include <string>
#include <vector>

#include "compiler/gpu/GpuBuilder.h"

namespace cortiq::compiler {

using Constants = std::vector<codegen::SpecValue>;

/// How the rows of a matrix are shared out.
struct ProductShape {
  uint32_t local, lanes, teamRows;
  uint64_t groups(uint64_t rows) const { return ceilDiv(rows, uint64_t{local / lanes} * teamRows); }
};

ProductShape productShape(uint64_t rows, uint64_t cols, bool eightBits);

/// A product whose results are made in 8 bits, which takes whole groups of 32 rows a workgroup.
struct QuantProduct {
  bool ofOneToken, eightBits; ///< activations that it reads
  uint32_t matrices = 1;      ///< 2 of a gated pair
  uint32_t choices = 1;       ///< experts whose products are added up
  bool experts = false;
};
struct QuantShape {
  ProductShape shape;
  uint32_t ahead; ///< groups of 32 weights that a lane asks for at a time
};
QuantShape quantShape(const artifact::WeightT& weight, const QuantProduct& product);

/// A tile of 64 rows and 32 tokens a workgroup.
inline constexpr ProductShape kTileShape{256, 32, 8};
inline constexpr uint32_t kTileTokens = 32;
/// Tokens a workgroup where there are many and no tiles.
inline constexpr uint32_t kManyTokens = 4;

/// A tile on cooperative matrices: rows of each matrix, and tokens. Both are multiples of 32.
struct WideShape {
  uint32_t rows = 64, tokens = 64, matrices = 1;
};
/// What runs in place of `d` with these constants where the device has cooperative matrices, if the codec has a shader
/// for it.
Status addWide(const artifact::WeightT& weight, uint64_t rows, WideShape shape, GpuBuilder& builder,
               Constants constants, artifact::GpuDispatchT& d);

/// A tile on cooperative matrices of f16: rows of each matrix and tokens, those of a subgroup of 32, groups of 32
/// columns at a time, tiles in shared memory, and steps that are on their way there.
struct HalfShape {
  uint32_t rows, tokens, subRows, subTokens, ahead, sets, rings = 1;
  uint32_t chunk = 0; ///< tokens that it is given, 0 = `tokens`
  uint32_t local() const { return rows / subRows * (tokens / subTokens) * 32; }
};
/// What runs in place of `d` with these constants for prompts on such matrices, in rising order of tokens.
Status addHalf(const artifact::WeightT& weight, uint64_t rows, std::span<const HalfShape> shapes, GpuBuilder& builder,
               const Constants& constants, artifact::GpuDispatchT& d);

/// The constants with another shape.
void setShape(const ProductShape& shape, Constants& constants);
/// Of `rows` rows of a matrix.
Constants shapeConstants(uint64_t rows, uint64_t cols, const ProductShape& shape);
inline Constants shapeConstants(const artifact::WeightT& weight, const ProductShape& shape) {
  return shapeConstants(weight.rows, weight.cols, shape);
}

/// Adds what a product has to know of an input that lacks its norm's factor.
void addNormIn(const GpuBuilder::Unfinished* norm, Constants& constants, artifact::GpuDispatchT& d);

/// Whether one of the norm's results is in 8 bits.
bool quantizes(const artifact::NormOpT& norm, const GpuBuilder& builder);
/// Adds the norm of the result, for the products that read that. Both of the norm's results, if it has two, or one of
/// them.
Status addNormOut(const artifact::NormOpT& norm, uint64_t groups, GpuBuilder& builder, Constants& constants,
                  artifact::GpuDispatchT& d);

/// Product of one part, with a norm of its result where a batch is one token.
Status lowerProduct(const artifact::MatmulPartT& part, GpuBuilder& builder, const artifact::NormOpT* norm);
/// Rows of an embedding, with a norm of the result where a batch is one token.
Status lowerEmbed(const artifact::EmbedOpT& embed, GpuBuilder& builder, const artifact::NormOpT* norm);
/// activation(gate) * up, both products of one input, for a single token.
Status lowerGatedPair(const artifact::MatmulPartT& gate, const artifact::MatmulPartT& up, const artifact::GluOpT& glu,
                      GpuBuilder& builder);

} // namespace cortiq::compiler
