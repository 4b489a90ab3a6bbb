#pragma once

// LLVM's own standard output, in programs that use its command-line parser.

namespace cortiq::tools {

/// Call first in main. LLVM's parser answers --help and --version by itself and ends the program, and LLVM's output
/// stream aborts where it cannot be written. From here on such an end is one sentence and exit status 2. Its messages
/// have no colours where NO_COLOR forbids them.
void guard_llvm_output(const char* program);

} // namespace cortiq::tools
