// --tensor: one tensor of a model file, decoded.

#include "formats/quote.h"
#include "tools/cortiq-inspect/f32_output.h"
#include "tools/cortiq-inspect/model_file.h"
#include "tools/cortiq-inspect/modes.h"

namespace cortiq::inspect {
namespace {

using formats::quote;

Status run(const Arguments& arguments) {
  CORTIQ_ASSIGN_OR_RETURN(const ModelFile model, open_model_file(arguments.file));
  const formats::Tensor* tensor = find_tensor(model, arguments.value);
  if (tensor == nullptr)
    return invalid(quote(arguments.file) + " has no tensor " + quote(arguments.value) +
                   "; run cortiq-inspect without --tensor for a list");
  const StatusOr<const formats::Codec*> codec = formats::weight_codec(*tensor);
  if (!codec.ok())
    return codec.status().with_prefix(quote(arguments.file));
  return write_decoded(**codec, tensor->data.data(), tensor->rows(), tensor->cols(),
                       std::string(arguments.get("output")));
}

constexpr Option kOptions[] = {kOutput};

} // namespace

const Mode kTensorMode = {
    .flag = "--tensor",
    .value = "NAME",
    .help = "decode one tensor of FILE to float32",
    .options = kOptions,
    .run = run,
};

} // namespace cortiq::inspect
