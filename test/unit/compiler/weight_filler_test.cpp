#include "compiler/emit/weight_filler.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compiler/emit/program_builder.h"
#include "dialects/CMF/IR/CMF.h"
#include "formats/layout/layout.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

namespace cortiq::compiler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class WeightFillerTest : public testing::Test {
protected:
  WeightFillerTest() {
    context_.loadDialect<cmf::CMFDialect, kernel::KernelDialect>();
    // 8 rows of 2 floats: row r is {r, r + 0.5}; behind them the halves 1, 2, 3, 4; then a q1s tensor of 3 x 32 whose
    // weights are -1, but r + 0.25 in column r of row r.
    for (int r = 0; r < 8; ++r)
      append(float(r)), append(float(r) + 0.5f);
    for (float v : {1.0f, 2.0f, 3.0f, 4.0f})
      append(formats::f32_to_f16(v));
    for (int r = 0; r < 3; ++r)
      append(formats::f32_to_f16(1.0f)), append(uint32_t{0});
    append(uint32_t{3});
    for (uint32_t r = 0; r < 3; ++r)
      append(33 * r), append(formats::f32_to_f16(float(r) + 0.25f));
  }

  template <class T>
  void append(T value) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
    file_.insert(file_.end(), bytes, bytes + sizeof(T));
  }

  StatusOr<WeightFiller> filler(const std::string& text) {
    module_ = mlir::parseSourceString<mlir::ModuleOp>(text, &context_);
    EXPECT_TRUE(module_);
    table_ = *buildWeightTable(*module_);
    return makeWeightFiller(*module_, [this](uint32_t) { return std::span<const uint8_t>(file_); }, table_);
  }

  std::vector<float> floats(const std::string& text, size_t count) {
    auto fill = filler(text);
    EXPECT_TRUE(fill.ok()) << fill.status().message();
    std::vector<float> out(count);
    Status status = (*fill)(0, {reinterpret_cast<uint8_t*>(out.data()), count * sizeof(float)});
    EXPECT_TRUE(status.ok()) << status.message();
    return out;
  }

  mlir::MLIRContext context_;
  mlir::OwningOpRef<mlir::ModuleOp> module_;
  std::vector<uint8_t> file_;
  std::vector<std::unique_ptr<artifact::WeightT>> table_;
};

TEST_F(WeightFillerTest, TakesRowsOfAFusedTensor) {
  EXPECT_THAT(floats("kernel.weight @w f32 verbatim 2 x 2 {source = #cmf.source<file = 0, offset = 0, bytes = 64>,"
                     " row_map = #cmf.rows<of = 8, first = 3>}",
                     4),
              ElementsAre(3.0f, 3.5f, 4.0f, 4.5f));
}

TEST_F(WeightFillerTest, BringsRotaryPairsIntoHalves) {
  // Heads of 4 rows: file rows 0 1 2 3 become 0 2 1 3.
  EXPECT_THAT(floats("kernel.weight @w f32 verbatim 4 x 2 {source = #cmf.source<file = 0, offset = 0, bytes = 64>,"
                     " row_map = #cmf.rows<of = 8, deinterleave = 4>}",
                     8),
              ElementsAre(0.0f, 0.5f, 2.0f, 2.5f, 1.0f, 1.5f, 3.0f, 3.5f));
}

TEST_F(WeightFillerTest, ConvertsVectorsAndAddsTheUnitOffset) {
  EXPECT_THAT(floats("kernel.weight @w f32 verbatim 1 x 4 {add = 1.0 : f32, source_codec = \"f16\","
                     " source = #cmf.source<file = 0, offset = 64, bytes = 8>}",
                     4),
              ElementsAre(2.0f, 3.0f, 4.0f, 5.0f));
}

TEST_F(WeightFillerTest, TakesAPartOfAVector) {
  EXPECT_THAT(floats("kernel.weight @w f32 verbatim 1 x 2 {source_codec = \"f16\","
                     " source = #cmf.source<file = 0, offset = 64, bytes = 8>, row_map = #cmf.rows<of = 4, first = 2>}",
                     2),
              ElementsAre(3.0f, 4.0f));
}

TEST_F(WeightFillerTest, PacksGroups) {
  auto fill = filler("kernel.weight @w f32 r16 8 x 2 {source = #cmf.source<file = 0, offset = 0, bytes = 64>}");
  ASSERT_TRUE(fill.ok()) << fill.status().message();
  std::vector<uint8_t> packed(64);
  ASSERT_TRUE((*fill)(0, packed).ok());
  const formats::Codec& f32 = formats::codec_info(formats::CodecId::kF32);
  packed.resize(packed.size() + formats::kLayoutTailPadding);
  std::vector<float> row(2);
  ASSERT_TRUE(
      formats::decode_packed_row(f32, formats::LayoutId::kR16, std::span(packed).first(64), 8, 2, 5, row.data()).ok());
  EXPECT_THAT(row, ElementsAre(5.0f, 5.5f));
}

TEST_F(WeightFillerTest, SizesWeightsWithOutliersByWhatTheyTake) {
  const formats::Codec& q1s = formats::codec_info(formats::CodecId::kQ1S);
  const std::string source = "source = #cmf.source<file = 0, offset = 72, bytes = 40>";
  struct Case {
    std::string text;
    uint64_t rows, first;
  };
  for (const Case& c :
       {Case{"kernel.weight @w q1s r16 3 x 32 {" + source + "}", 3, 0},
        Case{"kernel.weight @w q1s r16 2 x 32 {" + source + ", row_map = #cmf.rows<of = 3, first = 1>}", 2, 1}}) {
    auto fill = filler(c.text);
    ASSERT_TRUE(fill.ok()) << fill.status().message();
    // Behind the groups, at 64: a count of four bytes and six bytes an entry.
    ASSERT_EQ(table_[0]->bytes, 64 + 4 + 6 * c.rows);
    std::vector<uint8_t> packed(table_[0]->bytes);
    ASSERT_TRUE((*fill)(0, packed).ok());
    for (uint64_t r = 0; r < c.rows; ++r) {
      std::vector<float> row(32), want(32, -1.0f);
      want[c.first + r] = float(c.first + r) + 0.25f;
      ASSERT_TRUE(formats::decode_packed_row(q1s, formats::LayoutId::kR16, packed, c.rows, 32, r, row.data()).ok());
      EXPECT_EQ(row, want) << c.text << " row " << r;
    }
  }
}

TEST_F(WeightFillerTest, TakesTheFactorsOfALowRankPayload) {
  // 16 x 8 of rank 8: h(i) = i + 1, g(j) = 2, l(k) = 3; row i of U is the byte i, row k of V the byte 0x80 + k.
  file_.clear();
  append(uint32_t{0x0001014C}), append(uint32_t{8}), append(uint32_t{16}), append(uint32_t{8});
  for (int i = 0; i < 16; ++i)
    append(formats::f32_to_f16(float(i + 1)));
  for (float scale : {2.0f, 3.0f})
    for (int i = 0; i < 8; ++i)
      append(formats::f32_to_f16(scale));
  for (int i = 0; i < 16; ++i)
    append(uint8_t(i));
  for (int k = 0; k < 8; ++k)
    append(uint8_t(0x80 + k));
  const std::string source = "{source = #cmf.source<file = 0, offset = 0, bytes = 104,"
                             " low_rank = #cmf.low_rank<paths = 1, rank = 8, path = 1>>";
  auto decoded = [&](const std::string& text, const char* codec_name, uint64_t rows, uint64_t row) {
    auto fill = filler(text);
    EXPECT_TRUE(fill.ok()) << fill.status().message();
    const formats::Codec& codec = *formats::find_codec(codec_name);
    std::vector<uint8_t> packed(table_[0]->bytes);
    Status status = (*fill)(0, packed);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<float> out(8);
    EXPECT_TRUE(formats::decode_packed_row(codec, formats::LayoutId::kR16, packed, rows, 8, row, out.data()).ok());
    return out;
  };
  // Row 1 of the rows from 4 on: 5 is 0b101, h is 6.
  EXPECT_THAT(decoded("kernel.weight @w blr_u r16 2 x 8 " + source + ", row_map = #cmf.rows<of = 16, first = 4>}",
                      "blr_u", 2, 1),
              ElementsAre(6, -6, 6, -6, -6, -6, -6, -6));
  EXPECT_THAT(decoded("kernel.weight @w blr_v r16 8 x 8 " + source + "}", "blr_v", 8, 3),
              ElementsAre(6, 6, -6, -6, -6, -6, -6, 6));
  auto fill = filler("kernel.weight @w blr_u r16 16 x 16 " + source + "}");
  ASSERT_FALSE(fill.ok());
  EXPECT_THAT(fill.status().message(), HasSubstr("factor [16, 16] of path 1, which its low-rank payload"));
}

TEST_F(WeightFillerTest, RefusesWhatDoesNotFitTheFile) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"kernel.weight @w f32 verbatim 2 x 2", "has no source"},
           Case{"kernel.weight @w f32 verbatim 2 x 2 {source = #cmf.source<file = 0, offset = 100, bytes = 16>}",
                "outside of its file"},
           Case{"kernel.weight @w f32 verbatim 2 x 2 {source = #cmf.source<file = 0, offset = 0, bytes = 24>}",
                "has 24 bytes in the file, its shape needs 16"},
           Case{"kernel.weight @w f32 verbatim 2 x 2 {source = #cmf.source<file = 0, offset = 0, bytes = 64>,"
                " row_map = #cmf.rows<of = 8, first = 7>}",
                "takes row 8 of 8"},
           Case{"kernel.weight @w q1s r16 3 x 32 {source = #cmf.source<file = 0, offset = 72, bytes = 34>}",
                "weight w: states an outlier count of 3"},
       }) {
    auto fill = filler(c.text);
    ASSERT_FALSE(fill.ok()) << c.text;
    EXPECT_THAT(fill.status().message(), HasSubstr(c.message));
  }
}

} // namespace
} // namespace cortiq::compiler
