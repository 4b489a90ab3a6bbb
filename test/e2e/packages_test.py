#!/usr/bin/env python3
"""The Debian packages that cpack makes: what is in them, what they need, and that their programs run from where they are unpacked."""
import json
import os
import re
import shutil
import sys

import harness

RUNTIME = {"usr/bin/cortiq-bench", "usr/bin/cortiq-run", "usr/bin/cortiq-serve", "usr/include/cortiq.h", "usr/include/cortiq.hpp"}
COMPILER = {"usr/bin/cortiq-compile", "usr/bin/cortiq-convert", "usr/bin/cortiq-inspect", "usr/bin/cortiq-opt", "usr/bin/cortiq-skill"}


# With each program its manual page and completions.
for programs in (RUNTIME, COMPILER):
    for program in [os.path.basename(path) for path in programs if path.startswith("usr/bin/")]:
        programs |= {f"usr/share/man/man1/{program}.1", f"usr/share/bash-completion/completions/{program}",
                     f"usr/share/zsh/site-functions/_{program}", f"usr/share/fish/vendor_completions.d/{program}.fish"}


def files_below(folder):
    return {os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names}


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, *(os.path.basename(path) for path in COMPILER | RUNTIME if path.startswith("usr/bin/")))
    for tool in ("cpack", "dpkg-deb", "dpkg-shlibdeps"):
        if not shutil.which(tool):
            harness.skip_all(f"{tool} is not installed: tools/setup installs it")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        build = os.path.dirname(os.path.abspath(args.bin))
        made = harness.run(["cpack", "-G", "DEB", "-B", scratch.path("made")], cwd=build, timeout=600)
        tally.check("cpack", harness.why_not_success(made))
        found = {re.match(r"(.*?)_", name).group(1): os.path.join(scratch.path("made"), name)
                 for name in os.listdir(scratch.path("made")) if name.endswith(".deb")}
        tally.check("there are two packages", "" if set(found) == {"cortiq", "cortiq-compiler"} else str(sorted(found)))
        for name, wanted in (("cortiq", RUNTIME), ("cortiq-compiler", COMPILER)):
            harness.run(["dpkg-deb", "-x", found[name], scratch.path(name)])
            missing = wanted - files_below(scratch.path(name))
            tally.check(f"{name} has its files", "" if not missing else f"{sorted(missing)} are missing")
        needs = {name: harness.run(["dpkg-deb", "-f", path, "Depends"]).stdout for name, path in found.items()}
        tally.check("what runs artifacts needs no LLVM", "" if "libc6" in needs["cortiq"] and not re.search("llvm|mlir", needs["cortiq"]) else needs["cortiq"])
        tally.check("what makes them does", "" if "libmlir-19" in needs["cortiq-compiler"] else needs["cortiq-compiler"])
        pc = next(path for path in files_below(scratch.path("cortiq")) if path.endswith("cortiq.pc"))
        with open(os.path.join(scratch.path("cortiq"), pc)) as file:
            tally.check("pkg-config's file names the packages' prefix", "" if "prefix=/usr\n" in file.read() else "it does not")

        out = scratch.output(".cqa")
        compiled = harness.run([os.path.join(scratch.path("cortiq-compiler"), "usr/bin/cortiq-compile"), model, "-o", out])
        tally.check("the packaged compiler compiles", harness.why_not_success(compiled))
        ran = harness.run([os.path.join(scratch.path("cortiq"), "usr/bin/cortiq-run"), out, "-p", "Once", "-n", "4", "--temp", "0", "--json"])
        tally.check("the packaged runtime runs it", harness.why_not_success(ran) or ("" if len(json.loads(ran.stdout)["tokens"]) == 4 else ran.stdout))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
