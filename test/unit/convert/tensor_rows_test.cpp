// Rows of a source in the order of the result.

#include "tools/cortiq-convert/tensor_rows.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cortiq::convert {
namespace {

using ::testing::ElementsAre;

/// A matrix or vector of f32 whose values count up.
class Counting {
public:
  explicit Counting(std::vector<uint64_t> shape) {
    uint64_t n = 1;
    for (const uint64_t d : shape)
      n *= d;
    for (uint64_t i = 0; i < n; ++i)
      values_.push_back(static_cast<float>(i));
    tensor_.codec = &formats::codec_info(formats::CodecId::kF32);
    tensor_.shape = std::move(shape);
    tensor_.data = {reinterpret_cast<const uint8_t*>(values_.data()), 4 * values_.size()};
  }
  const formats::Tensor* get() const { return &tensor_; }

private:
  std::vector<float> values_;
  formats::Tensor tensor_;
};

std::vector<float> firsts(const TensorRows& rows) {
  std::vector<float> out;
  for (uint64_t row = 0; row < rows.rows(); ++row) {
    out.push_back(rows.row(row)[0]);
    float same = 0;
    std::vector<uint8_t> scratch;
    std::memcpy(&same, rows.bytes(row, scratch), sizeof same);
    EXPECT_EQ(out.back(), same) << row;
  }
  return out;
}

TEST(TensorRows, PlainRowsStay) {
  const Counting matrix({4, 2});
  const SourceTensor source{"m", {4, 2}, matrix.get()};
  EXPECT_THAT(firsts(TensorRows(source)), ElementsAre(0, 2, 4, 6));
}

// Row s * d / 2 + i of the result is row 2 i + s of the file, in each head.
TEST(TensorRows, NeighboursOfAHeadBecomeHalves) {
  const Counting matrix({8, 1});
  const SourceTensor source{"m", {8, 1}, matrix.get(), 0, from_neighbours(4)};
  EXPECT_THAT(firsts(TensorRows(source)), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

TEST(TensorRows, SlicesOfAFusedTensorBeginWhereTheyDo) {
  const Counting matrix({10, 3});
  const SourceTensor source{"m", {4, 3}, matrix.get(), 4, from_neighbours(4)};
  EXPECT_THAT(firsts(TensorRows(source)), ElementsAre(12, 18, 15, 21));
}

TEST(TensorRows, VectorsAreOneRow) {
  const Counting vector({10});
  const SourceTensor source{"v", {4}, vector.get(), 2, from_neighbours(4)};
  const TensorRows rows(source);
  EXPECT_EQ(rows.rows(), 1u);
  EXPECT_THAT(rows.row(0), ElementsAre(2, 4, 3, 5));
  EXPECT_FALSE(rows.met_nonfinite());
}

// One expert of a stack is rows of the stack seen as a matrix.
TEST(TensorRows, ExpertsAreSlicesOfTheirStack) {
  const Counting stack({3, 2, 2});
  const SourceTensor source{"e", {2, 2}, stack.get(), 4};
  EXPECT_THAT(firsts(TensorRows(source)), ElementsAre(8, 10));
}

// Columns move by whole stretches, in values and in bytes.
TEST(TensorRows, ColumnsMoveByStretches) {
  const Counting matrix({1, 8});
  const SourceTensor source{"m", {1, 8}, matrix.get(), 0, nullptr, {2, from_tiled_heads(2, 2, 1)}};
  const TensorRows rows(source);
  EXPECT_THAT(rows.row(0), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
  std::vector<uint8_t> scratch;
  float moved[8];
  std::memcpy(moved, rows.bytes(0, scratch), sizeof moved);
  EXPECT_THAT(moved, ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

TEST(TensorRows, ValuesChangeAfterTheyAreDecoded) {
  const Counting matrix({2, 2});
  SourceTensor source{"m", {2, 2}, matrix.get()};
  source.value = [](float v) { return -v; };
  EXPECT_FALSE(source.movable());
  EXPECT_THAT(TensorRows(source).row(1), ElementsAre(-2, -3));
}

TEST(TensorRows, ConvolutionsAreRowsOfTheirLastDimension) {
  const Counting conv({3, 4});
  const SourceTensor source{"c", {3, 1, 4}, conv.get()};
  EXPECT_THAT(firsts(TensorRows(source)), ElementsAre(0, 4, 8));
}

} // namespace
} // namespace cortiq::convert
