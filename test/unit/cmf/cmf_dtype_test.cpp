#include "formats/cmf/cmf_dtype.h"

#include <gmock/gmock.h>
#include <vector>

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

std::string verdict(int code, std::vector<uint64_t> shape, const std::vector<uint8_t>& payload) {
  Tensor tensor;
  tensor.name = "t";
  tensor.type_code = code;
  tensor.shape = std::move(shape);
  tensor.data = payload;
  return resolve_cmf_dtype(tensor).message();
}

std::vector<uint8_t> zeros(size_t n) {
  return std::vector<uint8_t>(n);
}

void append(std::vector<uint8_t>& out, std::initializer_list<uint32_t> words) {
  for (const uint32_t w : words)
    for (int i = 0; i < 4; ++i)
      out.push_back(static_cast<uint8_t>(w >> (8 * i)));
}

TEST(CmfDtype, SizesFollowFromTheShape) {
  struct Case {
    int code;
    size_t size; ///< for [2, 64] ([2, 128] for q1g)
  };
  for (const auto& [code, size] : {Case{0, 512},
                                   {1, 256},
                                   {2, 256},
                                   {3, 132},
                                   {4, 72},
                                   {6, 128},
                                   {9, 260},
                                   {11, 72},
                                   {12, 24},
                                   {15, 76},
                                   {16, 44},
                                   {17, 512},
                                   {18, 1024},
                                   {20, 36},
                                   {21, 68}}) {
    const std::vector<uint64_t> shape = {2, code == 20 ? 128u : 64u};
    EXPECT_EQ(verdict(code, shape, zeros(size)), "") << code;
    EXPECT_THAT(verdict(code, shape, zeros(size + 1)), HasSubstr("byte length")) << code;
    EXPECT_THAT(verdict(code, shape, zeros(size - 1)), HasSubstr("byte length")) << code;
  }
}

TEST(CmfDtype, KnowsReservedAndUnknownCodes) {
  EXPECT_EQ(verdict(5, {2, 64}, zeros(7)), "");
  EXPECT_EQ(verdict(7, {2, 64}, zeros(7)), "");
  EXPECT_EQ(verdict(22, {2, 64}, zeros(7)), "tensor 't': has the unknown dtype id 22");
}

TEST(CmfDtype, WantsMatricesOfWholeGroups) {
  for (const int code : {3, 8, 9, 10, 11, 12, 13, 14, 15, 16, 19, 20, 21})
    EXPECT_THAT(verdict(code, {64}, zeros(100)), HasSubstr("two dimensions")) << code;
  for (const int code : {8, 10, 11, 12, 13, 14, 15, 16, 20, 21})
    EXPECT_NE(verdict(code, {2, 48}, zeros(100)), "") << code;
}

TEST(CmfDtype, ReadsListedTensorsAsAffine) {
  const std::vector<uint8_t> payload = zeros(44);
  std::vector<Tensor> tensors(3);
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = i == 0 ? "language_model.a" : i == 1 ? "b" : "c";
    tensors[i].type_code = 16;
    tensors[i].shape = {2, 64};
    tensors[i].data = payload;
    ASSERT_TRUE(resolve_cmf_dtype(tensors[i]).ok());
  }
  EXPECT_EQ(mark_affine_tensors(tensors, {"a", "language_model.b"}).message(), "");
  EXPECT_EQ(tensors[0].codec->name, "q2tp_affine");
  EXPECT_EQ(tensors[1].codec->name, "q2tp_affine");
  EXPECT_EQ(tensors[2].codec->name, "q2tp");
  EXPECT_THAT(mark_affine_tensors(tensors, {"d"}).message(), HasSubstr("'d', which is the name of 0 tensors"));
  EXPECT_THAT(mark_affine_tensors(tensors, {"b"}).message(), HasSubstr("is q2tp_affine instead of q2tp"));
}

TEST(CmfPayload, Vbit) {
  // Rows of 3 and 5 bits: 2 widths, 4 scales, 24 + 40 bytes of codes.
  std::vector<uint8_t> payload = zeros(74);
  payload[0] = 3;
  payload[1] = 5;
  EXPECT_EQ(verdict(8, {2, 64}, payload), "");
  payload[1] = 7;
  EXPECT_THAT(verdict(8, {2, 64}, payload), HasSubstr("row bit width 7 in row 1"));
  payload[1] = 4;
  EXPECT_THAT(verdict(8, {2, 64}, payload), HasSubstr("byte length"));
  EXPECT_THAT(verdict(8, {0xFFFFFFFF, 0xFFFFFFE0}, payload), HasSubstr("needs at least"));
}

TEST(CmfPayload, VbitWithRowOffsets) {
  std::vector<uint8_t> payload = {3, 5};
  payload.resize(10);
  append(payload, {0, 24, 64});
  payload.resize(86);
  EXPECT_EQ(verdict(10, {2, 64}, payload), "");
  payload[14] = 25;
  EXPECT_THAT(verdict(10, {2, 64}, payload), HasSubstr("row offset 25 for row 1, expected 24"));
}

TEST(CmfPayload, Q1sOutliers) {
  std::vector<uint8_t> payload = zeros(24);
  append(payload, {1, 127});
  payload.resize(34);
  EXPECT_EQ(verdict(13, {2, 64}, payload), "");
  payload[28] = 128;
  EXPECT_THAT(verdict(13, {2, 64}, payload), HasSubstr("outlier at index 128"));
  payload[24] = 2;
  EXPECT_THAT(verdict(13, {2, 64}, payload), HasSubstr("outlier count of 2"));
}

TEST(CmfPayload, Q1tOverlay) {
  std::vector<uint8_t> payload = zeros(36);
  append(payload, {0, 1, 2, 5, 63});
  EXPECT_EQ(verdict(14, {2, 64}, payload), "");
  payload[52] = 64;
  EXPECT_THAT(verdict(14, {2, 64}, payload), HasSubstr("column 64 of 64"));
  payload[40] = 3;
  EXPECT_THAT(verdict(14, {2, 64}, payload), HasSubstr("decreases at row 1"));
  payload[36] = 1;
  EXPECT_THAT(verdict(14, {2, 64}, payload), HasSubstr("start"));
}

TEST(CmfPayload, LowRankHeader) {
  std::vector<uint8_t> payload = {0x4C, 1, 2, 0};
  append(payload, {8, 8, 16});
  payload.resize(192);
  EXPECT_EQ(verdict(19, {8, 16}, payload), "");
  EXPECT_THAT(verdict(19, {16, 8}, payload), HasSubstr("low-rank header for [8, 16]"));
  payload[4] = 16;
  EXPECT_THAT(verdict(19, {8, 16}, payload), HasSubstr("rank 16"));
  payload[4] = 8;
  payload[1] = 2;
  EXPECT_THAT(verdict(19, {8, 16}, payload), HasSubstr("not version 1"));
}

} // namespace
} // namespace cortiq::formats
