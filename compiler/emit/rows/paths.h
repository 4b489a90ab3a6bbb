#pragma once

// The paths of a program's products as rows of the artifact's schema, one a choice with the matrices that it holds for.

#include "compiler/emit/rows/rows.h"

namespace cortiq::compiler {

std::vector<std::unique_ptr<artifact::PathChoiceT>> pathRows(kernel::ProgramOp program, const ProgramNumbers& numbers);

} // namespace cortiq::compiler
