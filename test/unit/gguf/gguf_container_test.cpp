#include <cstdlib>
#include <gmock/gmock.h>
#include <map>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "formats/gguf/gguf_file.h"
#include "formats/json.h"
#include "test/unit/gguf/gguf_builder.h"

namespace cortiq::formats {
namespace {

using ::testing::HasSubstr;

/// What the message has to say for each golden file that is refused.
const std::map<std::string, const char*> kReasons = {
    {"bad_align0.gguf", "general.alignment is 0"},
    {"bad_align48.gguf", "general.alignment is 48"},
    {"bad_align_u64.gguf", "general.alignment is of type u64"},
    {"bad_array_huge.gguf", "claims 1152921504606846976 elements"},
    {"bad_bigendian.gguf", "big-endian"},
    {"bad_dims5.gguf", "5 dimensions"},
    {"bad_dims_overflow.gguf", "element count overflows"},
    {"bad_dup_key.gguf", "'general.architecture' stands there twice"},
    {"bad_dup_tensor.gguf", "two tensors have one name"},
    {"bad_empty.gguf", "is empty"},
    {"bad_empty_key.gguf", "empty key"},
    {"bad_huge_kv_count.gguf", "claims 1099511627776 metadata entries"},
    {"bad_huge_string.gguf", "claims 9223372036854775809 bytes"},
    {"bad_huge_tensor_count.gguf", "claims 1099511627776 tensors"},
    {"bad_magic.gguf", "wrong magic"},
    {"bad_negative_count.gguf", "claims 18446744073709551615 tensors"},
    {"bad_nested_array.gguf", "array of arrays"},
    {"bad_offset_gap.gguf", "offset 2624, expected 2560"},
    {"bad_offset_overlap.gguf", "offset 0, expected 2560"},
    {"bad_offset_unaligned.gguf", "offset 2561, expected 2560"},
    {"bad_row_not_block.gguf", "rows of 48 weights"},
    {"bad_tensor_type4.gguf", "removed tensor type 4"},
    {"bad_tensor_type99.gguf", "unknown tensor type 99"},
    {"bad_trunc_data.gguf", "past the end of the file"},
    {"bad_trunc_header.gguf", "ends inside the header"},
    {"bad_trunc_info.gguf", "tensor table"},
    {"bad_trunc_kv.gguf", "metadata"},
    {"bad_value_type13.gguf", "unknown value type 13"},
    {"bad_version0.gguf", "version 0"},
    {"bad_version4.gguf", "version 4"},
};

Json golden_manifest() {
  const std::vector<uint8_t> text = test::read_bytes(test::fixtures() + "/golden/gguf_container/manifest.json");
  return Json::parse(text, nullptr, false);
}

/// The value in the words of the manifest: floats are compared as numbers, the rest as text.
bool same_scalar(const GgufScalar& found, const std::string& wanted) {
  return std::visit(
      [&](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::string_view>)
          return value == wanted;
        else if constexpr (std::is_same_v<T, bool>)
          return wanted == (value ? "True" : "False");
        else if constexpr (std::is_same_v<T, double>)
          return value == std::strtod(wanted.c_str(), nullptr);
        else
          return std::to_string(value) == wanted;
      },
      found);
}

/// The manifest's word for a type differs from ours for strings and arrays.
std::string manifest_type(GgufType type) {
  if (type == GgufType::kString)
    return "str";
  return type == GgufType::kArray ? "arr" : std::string(gguf_type_name(type));
}

void compare_entry(const GgufEntry& entry, const Json& wanted) {
  EXPECT_EQ(entry.key, wanted["key"].get<std::string>());
  EXPECT_EQ(manifest_type(entry.type), wanted["type"].get<std::string>());
  if (const auto* scalar = std::get_if<GgufScalar>(&entry.value)) {
    EXPECT_TRUE(same_scalar(*scalar, wanted["value"])) << entry.key;
    return;
  }
  const GgufArray& array = std::get<GgufArray>(entry.value);
  const Json& items = wanted["value"]["items"];
  EXPECT_EQ(manifest_type(array.element), wanted["value"]["elem"].get<std::string>());
  ASSERT_EQ(array.size, items.size());
  size_t i = 0;
  array.for_each([&](const GgufScalar& value) {
    EXPECT_TRUE(same_scalar(value, items[i])) << entry.key << "[" << i << "]";
    ++i;
    return true;
  });
}

void compare(const GgufFile& file, const Json& wanted) {
  EXPECT_EQ(file.version(), wanted["version"].get<uint32_t>());
  EXPECT_EQ(file.alignment(), wanted["alignment"].get<uint32_t>());
  EXPECT_EQ(file.data_offset(), wanted["data_offset"].get<uint64_t>());
  ASSERT_EQ(file.entries().size(), wanted["kv"].size());
  for (size_t i = 0; i < file.entries().size(); ++i)
    compare_entry(file.entries()[i], wanted["kv"][i]);
  ASSERT_EQ(file.tensors().size(), wanted["tensors"].size());
  for (size_t i = 0; i < file.tensors().size(); ++i) {
    const Tensor& tensor = file.tensors()[i];
    const Json& row = wanted["tensors"][i];
    std::vector<uint64_t> dims = row["dims"];
    std::reverse(dims.begin(), dims.end());
    EXPECT_EQ(tensor.name, row["name"].get<std::string>());
    EXPECT_EQ(tensor.shape, dims);
    EXPECT_EQ(tensor.type_code, row["type"].get<int>());
    EXPECT_EQ(tensor.offset, file.data_offset() + row["offset"].get<uint64_t>());
    EXPECT_EQ(tensor.data.size(), row["nbytes"].get<uint64_t>());
  }
}

TEST(GgufContainer, FollowsTheGoldenManifest) {
  CORTIQ_NEED_FIXTURES();
  const Json manifest = golden_manifest();
  ASSERT_TRUE(manifest.is_object());
  for (const Json& row : manifest["files"]) {
    const std::string name = row["file"];
    SCOPED_TRACE(name);
    const StatusOr<GgufFile> file = GgufFile::open(test::fixtures() + "/golden/gguf_container/" + name);
    if (row["expect"] == "accept") {
      ASSERT_TRUE(file.ok()) << file.status().message();
      if (row.contains("expected"))
        compare(*file, row["expected"]);
    } else if (row["expect"] == "reject") {
      ASSERT_FALSE(file.ok());
      ASSERT_TRUE(kReasons.contains(name));
      EXPECT_THAT(file.status().message(), HasSubstr(kReasons.at(name)));
    }
    if (!file.ok())
      EXPECT_TRUE(test::is_one_sentence(file.status().message()));
  }
}

TEST(GgufContainer, ListsTypesWithoutWeightsAndRefusesThemByName) {
  const test::ScratchFolder folder;
  GgufBuilder()
      .text("general.architecture", "llama")
      .tensor("known", {32, 2}, 2, 36)
      .tensor("ternary", {256, 1}, 34, 54)
      .tensor("raw", {3}, 26, 12)
      .write(folder / "a.gguf");
  const StatusOr<GgufFile> file = GgufFile::open(folder / "a.gguf");
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(decode_tensor(*file->find("known")).ok());
  EXPECT_TRUE(decode_tensor(*file->find("ternary")).ok());
  EXPECT_EQ(file->find("ternary")->data.size(), 54u);
  EXPECT_THAT(decode_tensor(*file->find("raw")).status().message(), HasSubstr("I32 (type 26)"));
}

TEST(GgufContainer, RefusesZeroDimensionsAndBadBooleans) {
  const test::ScratchFolder folder;
  const auto verdict = [&](const GgufBuilder& builder) {
    builder.write(folder / "a.gguf");
    return GgufFile::open(folder / "a.gguf").status().message();
  };
  EXPECT_THAT(verdict(GgufBuilder().tensor("w", {32, 0}, 0, 0)), HasSubstr("dimension of 0"));
  EXPECT_THAT(verdict(GgufBuilder().number("b", GgufType::kBool, uint8_t{2})), HasSubstr("boolean 2"));
  EXPECT_THAT(verdict(GgufBuilder().array<uint8_t>("b", GgufType::kBool, {1, 3})), HasSubstr("boolean 3"));
}

} // namespace
} // namespace cortiq::formats
