#pragma once

// The one place that includes xbyak: errors are recorded, not thrown, and the operator names stay C++'s own.

#define XBYAK_NO_EXCEPTION
#define XBYAK_NO_OP_NAMES
#include <xbyak/xbyak.h>
