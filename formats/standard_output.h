#pragma once

// What a program owes its standard output at its end.

#include "formats/status.h"

namespace cortiq::formats {

/// Hands over what standard output still holds. Fails where that, or anything written before, could not be written: a
/// full disk or a closed pipe must not look like success.
Status flush_standard_output();

/// The exit status of `program` that is to end with `code`: another one, and a sentence on stderr, where standard
/// output could not be written and nothing else was wrong.
int exit_code_after_output(const char* program, int code);

} // namespace cortiq::formats
