// granite: scales on the embedding, on what each block adds, on the scores and on the logits. A file may switch
// rotation off.

#include "compiler/frontend/arch/granite.h"

#include "compiler/frontend/arch/Architecture.h"

namespace cortiq::compiler {

Status describeGranite(GgufReader& reader, std::optional<ExpertTraits> experts) {
  CORTIQ_RETURN_IF_ERROR(reader.describeDecoder(
      {.pairing = RopePairing::kNeighbours, .scales = true, .logitScale = LogitScale::kDivides, .experts = experts}));
  CORTIQ_ASSIGN_OR_RETURN(const bool rotates,
                          reader.file().get_bool_or(reader.architecture() + ".rope.scaling.finetuned", true));
  if (!rotates)
    for (RopeTable& table : reader.model().ropes)
      table = {};
  return {};
}

const Architecture kGranite = {"granite", [](GgufReader& reader) { return describeGranite(reader, std::nullopt); }};

} // namespace cortiq::compiler
