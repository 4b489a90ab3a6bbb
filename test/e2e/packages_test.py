#!/usr/bin/env python3
"""The Debian packages that cpack makes: what is in them, what they need, and that their programs run from where they are unpacked."""
import json
import os
import re
import shutil
import sys

import harness

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RUNTIME = {"usr/bin/cortiq-bench", "usr/bin/cortiq-run", "usr/bin/cortiq-serve", "usr/include/cortiq.h", "usr/include/cortiq.hpp"}
COMPILER = {"usr/bin/cortiq-compile", "usr/bin/cortiq-convert", "usr/bin/cortiq-inspect", "usr/bin/cortiq-opt", "usr/bin/cortiq-skill"}


# With each program its manual page and completions.
for programs in (RUNTIME, COMPILER):
    for program in [os.path.basename(path) for path in programs if path.startswith("usr/bin/")]:
        programs |= {f"usr/share/man/man1/{program}.1", f"usr/share/bash-completion/completions/{program}",
                     f"usr/share/zsh/site-functions/_{program}", f"usr/share/fish/vendor_completions.d/{program}.fish"}


def files_below(folder):
    return {os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names}


def symbols_of(library):
    """Names that a library offers, with their versions."""
    text = harness.run(["readelf", "--dyn-syms", "--wide", library]).stdout
    return [line.split()[7] for line in text.splitlines() if re.match(r"\s*\d+:", line) and " UND " not in line and " ABS " not in line and len(line.split()) > 7]


def check_package(tally, name, deb, root):
    """What Debian's own checker would say of it."""
    control = {line.split(": ")[0]: line.split(": ", 1)[1] for line in harness.run(["dpkg-deb", "-f", deb]).stdout.splitlines() if re.match(r"\w[\w-]*: ", line)}
    for field, form in (("Package", re.escape(name)), ("Version", r"\d+(\.\d+)*"), ("Architecture", r"[a-z0-9]+"), ("Maintainer", r".+ <\S+@\S+>"),
                        ("Description", r"\S.{10,120}"), ("Installed-Size", r"\d+"), ("Depends", r".*libc6 \(>= [^)]+\).*")):
        tally.check(f"{name}: field {field}", "" if re.fullmatch(form, control.get(field, "")) else f"{control.get(field)!r}")
    for line in harness.run(["dpkg-deb", "-c", deb]).stdout.splitlines():
        mode, owner = line.split()[:2]
        good = owner == "root/root" and "s" not in mode and (mode[0] == "l" or mode[8] != "w")
        tally.check(f"{name}: owner and permissions", "" if good else line)
    tally.check(f"{name}: sums of its files", "" if "md5sums" in harness.run(["dpkg-deb", "--ctrl-tarfile", deb]).stdout else "there are none")
    for file in ("copyright", "SECURITY.md", name + ".cdx.json"):
        tally.check(f"{name}: {file}", "" if os.path.exists(os.path.join(root, "usr/share/doc", name, file)) else "it is missing")
    for path in files_below(root):
        with open(os.path.join(root, path), "rb") as file:
            if file.read(4) == b"\x7fELF":
                kind = harness.run(["readelf", "-SlW", os.path.join(root, path)]).stdout
                tally.check(f"{name}: {path} is stripped", "" if ".symtab" not in kind and ".debug_info" not in kind else "it is not")
                tally.check(f"{name}: {path} has no executable stack", "" if not re.search(r"GNU_STACK.*RWE", kind) else "it has")


def check_materials(tally, args, name, root):
    """The bill of materials names what is there, with the versions that are installed here."""
    path = os.path.join(root, "usr/share/doc", name, name + ".cdx.json")
    with open(path, encoding="utf-8") as file:
        bom = json.load(file)
    tally.check(f"{name}: form of the bill", "" if (bom["bomFormat"], bom["specVersion"], bom["version"]) == ("CycloneDX", "1.5", 1) else f"{bom}")
    refs = [c["bom-ref"] for c in bom["components"]]
    tally.check(f"{name}: every part once", "" if len(set(refs)) == len(refs) and sorted(refs) == refs else "not so")
    tally.check(f"{name}: it depends on all", "" if bom["dependencies"] == [{"ref": bom["metadata"]["component"]["bom-ref"], "dependsOn": refs}] else "not so")
    purl = r"pkg:(deb/debian|cargo)/[a-z0-9A-Z+.%_-]+@[a-zA-Z0-9.+~%-]+(\?arch=\w+)?"
    bad = [c["purl"] for c in bom["components"] if c["type"] != "library" or not re.fullmatch(purl, c["purl"])]
    tally.check(f"{name}: names of parts", ", ".join(bad))
    parts = {c["name"]: c for c in bom["components"]}
    for package in ("libsodium-dev", "nlohmann-json3-dev", "libc6", *(("libseccomp-dev",) if name == "cortiq" else ("libmlir-19", "libxbyak-dev"))):
        here = harness.run(["dpkg-query", "-W", "-f", "${Version}\n", package]).stdout.split()
        tally.check(f"{name}: {package}", "" if package in parts and parts[package]["version"] in here else f"{parts.get(package)}, here is {here}")
    lock = open(os.path.join(ROOT, "runtime/text/rust/Cargo.lock"), encoding="utf-8").read()
    crates = [c for c in bom["components"] if c["purl"].startswith("pkg:cargo/")]
    wrong = [c["name"] for c in crates if f'name = "{c["name"]}"\nversion = "{c["version"]}"' not in lock or c["hashes"][0]["content"] not in lock]
    tally.check(f"{name}: crates are those that are pinned", ", ".join(wrong) if crates or not os.environ.get("CORTIQ_WHOLE_BUILD") == "1" else "there are none")
    tally.check(f"{name}: nothing of this machine", "" if ROOT not in open(path).read() else "a folder of it")
    return bom


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
        for name, path in found.items():
            check_package(tally, name, path, scratch.path(name))
            check_materials(tally, args, name, scratch.path(name))
        library = next(os.path.join(scratch.path("cortiq"), path) for path in files_below(scratch.path("cortiq")) if re.search(r"libcortiq\.so\.\d", path))
        odd = [name for name in symbols_of(library) if not re.fullmatch(r"cortiq_\w+@@CORTIQ_\d+(\.\d+)*", name)]
        tally.check("the library's names have versions, and are ours", ", ".join(odd) if symbols_of(library) else "it has none")
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
