#pragma once

// The one place that includes asmjit.

#include <asmjit/arm/a64assembler.h>
#include <asmjit/core.h>
