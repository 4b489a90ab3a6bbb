#!/usr/bin/env python3
"""The programs that only run artifacts carry no compiler: neither in what they load nor in what they were linked from."""
import os
import re
import sys

import harness

RUNTIME_PROGRAMS = ("cortiq-run", "cortiq-bench")
ALLOWED = re.compile(r"^(libc|libm|libstdc\+\+|libgcc_s|ld-linux-x86-64|ld-linux-aarch64)\.so\b")
COMPILER_SYMBOLS = re.compile(r"\b(llvm|mlir|Xbyak)::")


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, *RUNTIME_PROGRAMS)
    tally = harness.Tally()
    for name in RUNTIME_PROGRAMS:
        path = os.path.join(args.bin, name)
        dynamic = harness.run(["readelf", "-dW", path]).stdout
        needed = re.findall(r"\(NEEDED\)\s+Shared library: \[(.+?)\]", dynamic)
        foreign = [library for library in needed if not ALLOWED.match(library)]
        tally.check(f"{name} loads only the C and C++ libraries", f"it needs {', '.join(foreign)}" if foreign else None)
        tally.check(f"{name} has its libraries listed", None if needed else "readelf found none")
        symbols = COMPILER_SYMBOLS.search(harness.run(["nm", "-C", path]).stdout)
        tally.check(f"{name} holds no compiler code", f"it has {symbols.string[symbols.start():][:60]!r}" if symbols else None)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
