// Fixtures with layers of recurrent state, changed: what contradicts itself is refused by name.

#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/frontend/LoadModel.h"
#include "formats/cmf/cmf_file.h"
#include "formats/cmf/cmf_writer.h"
#include "mlir/IR/MLIRContext.h"
#include "test/unit/base/test_files.h"

namespace cortiq::compiler {
namespace {

using formats::Json;

struct Change {
  std::string name;
  const char* file;
  std::function<void(Json& arch)> edit;
  std::string without; ///< a tensor that is left out
  const char* word;    ///< of the refusal; null = accepted
};

// Writes `file` again with another header and without one tensor; gives the refusal, empty when there is none.
std::string refusal(const Change& change) {
  test::ScratchFolder folder;
  StatusOr<formats::CmfFile> file = formats::CmfFile::open(test::fixtures() + "/models/" + change.file);
  EXPECT_TRUE(file.ok());
  Json header = file->header();
  if (change.edit)
    change.edit(header["arch"]);
  formats::CmfWriter writer(header);
  for (const formats::Tensor& tensor : file->tensors())
    if (tensor.name != change.without)
      writer.add_tensor(tensor.name, tensor.type_code, tensor.shape, tensor.data);
  const std::string path = folder / "changed.cmf";
  const Status written = writer.write(path);
  EXPECT_TRUE(written.ok()) << written.message();
  mlir::MLIRContext context;
  StatusOr<LoadedModel> model = loadModel(path, context);
  return model.ok() ? std::string() : model.status().message();
}

void set(Json& arch, const char* key, Json value) {
  arch[key] = std::move(value);
}

TEST(LinearMixers, ContradictionsAreRefusedByName) {
  CORTIQ_NEED_FIXTURES();
  const char *gdn = "qwen3_5-q4tp.cmf", *lfm = "lfm2-q8.cmf";
  const std::string layer = "model.layers.0.";
  const Change changes[] = {
      {"nothing", gdn, {}, {}, nullptr},
      {"a prediction head", gdn, [](Json& a) { set(a, "mtp", {{"num_layers", 1}}); }, {}, nullptr},
      {"no core", gdn, [](Json& a) { a.erase("linear_core"); }, {}, "arch.linear_core is missing"},
      {"no taps",
       gdn,
       [](Json& a) { a.erase("linear_conv_kernel_dim"); },
       {},
       "arch.linear_conv_kernel_dim is missing"},
      {"one tap", gdn, [](Json& a) { set(a, "linear_conv_kernel_dim", 1); }, {}, "at least 2 taps"},
      {"no key heads", gdn, [](Json& a) { set(a, "linear_num_key_heads", nullptr); }, {}, "arch.linear_num_key_heads"},
      {"zero", gdn, [](Json& a) { set(a, "linear_key_head_dim", 0); }, {}, "arch.linear_key_head_dim is 0"},
      {"heads", gdn, [](Json& a) { set(a, "linear_num_key_heads", 3); }, {}, "not a multiple"},
      {"sizes", gdn, [](Json& a) { set(a, "linear_key_head_dim", 16); }, {}, "in_proj_qkv.weight"},
      {"no decay", gdn, {}, layer + "linear_attn.A_log", "linear_attn.A_log' is missing"},
      {"no gate", gdn, {}, layer + "linear_attn.in_proj_z.weight", "in_proj_z.weight' is missing"},
      {"no width",
       lfm,
       [](Json& a) { a.erase("linear_conv_kernel_dim"); },
       {},
       "arch.linear_conv_kernel_dim is missing"},
      {"width", lfm, [](Json& a) { set(a, "linear_conv_kernel_dim", 4); }, {}, "short_conv.conv.weight"},
      {"no projection", lfm, {}, layer + "short_conv.in_proj.weight", "short_conv.in_proj.weight' is missing"},
      {"no kda fields", lfm, [](Json& a) { a["layer_types"][0] = "Kda"; }, {}, "arch.linear_num_key_heads is missing"},
  };
  for (const Change& change : changes) {
    const std::string message = refusal(change);
    if (change.word)
      EXPECT_NE(message.find(change.word), std::string::npos) << change.name << ": " << message;
    else
      EXPECT_EQ(message, "") << change.name;
  }
}

} // namespace
} // namespace cortiq::compiler
