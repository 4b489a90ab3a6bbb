// granitemoe: granite with experts, each as wide as a feed-forward block; the chosen ones' weights are divided by their
// sum.

#include "compiler/frontend/arch/Architecture.h"
#include "compiler/frontend/arch/granite.h"

namespace cortiq::compiler {

const Architecture kGraniteMoe = {"granitemoe", [](GgufReader& reader) {
                                    return describeGranite(
                                        reader, ExpertTraits{.normalize = true, .width = ExpertWidth::kFeedForward});
                                  }};

} // namespace cortiq::compiler
