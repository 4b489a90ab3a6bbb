#include "compiler/frontend/GgufFrontend.h"

#include "compiler/frontend/GgufReader.h"
#include "compiler/frontend/arch/Architecture.h"
#include "formats/quote.h"

namespace cortiq::compiler {

namespace {

Status describe(GgufReader& reader) {
  CORTIQ_RETURN_IF_ERROR(reader.readArchitecture());
  if (const Architecture* architecture = findArchitecture(reader.architecture()))
    return architecture->describe(reader);
  std::string known;
  for (const Architecture* architecture : architectures())
    known += (known.empty() ? "" : ", ") + std::string(architecture->name);
  return unsupported("architecture " + formats::quote(reader.architecture()) +
                     " is not one that this compiler builds; it knows " + known);
}

} // namespace

StatusOr<ModelDescription> describeGguf(const formats::GgufFile& file, uint64_t maxContext) {
  CORTIQ_RETURN_IF_ERROR(file.check_model());
  GgufReader reader(file, maxContext);
  const std::string prefix = formats::quote(file.path());
  if (Status status = describe(reader); !status.ok())
    return status.message().starts_with(prefix) ? status : status.with_prefix(prefix);
  return reader.takeModel();
}

} // namespace cortiq::compiler
