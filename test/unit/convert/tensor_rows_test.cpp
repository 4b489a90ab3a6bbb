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
    std::memcpy(&same, rows.bytes(row), sizeof same);
    EXPECT_EQ(out.back(), same) << row;
  }
  return out;
}

TEST(TensorRows, PlainRowsStay) {
  const Counting matrix({4, 2});
  const SourceTensor source{"m", {4, 2}, matrix.get(), 0, 0};
  EXPECT_THAT(firsts(TensorRows(source)), ElementsAre(0, 2, 4, 6));
}

// Row s * d / 2 + i of the result is row 2 i + s of the file, in each head.
TEST(TensorRows, NeighboursOfAHeadBecomeHalves) {
  const Counting matrix({8, 1});
  const SourceTensor source{"m", {8, 1}, matrix.get(), 0, 4};
  EXPECT_THAT(firsts(TensorRows(source)), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

TEST(TensorRows, SlicesOfAFusedTensorBeginWhereTheyDo) {
  const Counting matrix({10, 3});
  const SourceTensor source{"m", {4, 3}, matrix.get(), 4, 4};
  EXPECT_THAT(firsts(TensorRows(source)), ElementsAre(12, 18, 15, 21));
}

TEST(TensorRows, VectorsAreOneRow) {
  const Counting vector({10});
  const SourceTensor source{"v", {4}, vector.get(), 2, 4};
  const TensorRows rows(source);
  EXPECT_EQ(rows.rows(), 1u);
  EXPECT_THAT(rows.row(0), ElementsAre(2, 4, 3, 5));
  EXPECT_FALSE(rows.met_nonfinite());
}

} // namespace
} // namespace cortiq::convert
