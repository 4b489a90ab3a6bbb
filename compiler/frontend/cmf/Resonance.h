#pragma once

// arch.moe.router_resonance (specification 3.8): experts that are chosen by what they have learnt, and experts that
// records of a genome append to a layer (4.6).

#include "compiler/frontend/ModelDescription.h"
#include "formats/cmf/cmf_file.h"

namespace cortiq::compiler {

/// Whether layer `index` has descriptors, each expert its own or all in one tensor.
bool hasCmfResonance(const formats::CmfFile& file, int64_t index);

/// An expert that an active record appends.
struct GrownExpert {
  std::string prefix; ///< of its tensors: "skill.ID.model.layers.3.mlp.experts.8."
};

/// The experts that active records append to layer `index`, in their order.
std::vector<GrownExpert> grownExperts(const formats::CmfFile& file, int64_t index);

/// Says what of a genome is not used or not checked.
void noteCmfGenome(const formats::CmfFile& file, ModelDescription& model);

/// Adds the descriptors of the `own` experts of the layer and of those that were grown behind them.
Status describeCmfResonance(const formats::CmfFile& file, int64_t index, int64_t own,
                            const std::vector<GrownExpert>& grown, ModelDescription& model);

} // namespace cortiq::compiler
