#!/usr/bin/env python3
"""The library as other programs meet it: docs/embedding.md's programs, built against an installed cortiq (pkg-config, and CMake's
find_package) and run, against what cortiq-run says.
"""
import json
import os
import re
import shutil
import subprocess
import sys

import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROMPT = "Once upon a time"


def program(language):
    """The one code block of this language on the page."""
    with open(os.path.join(ROOT, "docs", "embedding.md")) as file:
        blocks = re.findall(rf"^```{language}\n(.*?)^```", file.read(), re.S | re.M)
    if len(blocks) != 1:
        sys.exit(f"docs/embedding.md has {len(blocks)} blocks of {language}, not one")
    return blocks[0]


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    return path


def checked(tally, label, command, **options):
    result = harness.run(command, timeout=300, **options)
    tally.check(label, harness.why_not_success(result))
    return result


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    for tool in ("cmake", "pkg-config", "cc"):
        if not shutil.which(tool):
            harness.skip_all(f"{tool} is not installed")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        prefix = scratch.path("prefix")
        build = os.path.dirname(os.path.abspath(args.bin))
        checked(tally, "cmake --install", ["cmake", "--install", build, "--prefix", prefix, "--component", "runtime"])
        artifact = scratch.path("m.cqa")
        checked(tally, "compile", [os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact])
        answer = json.loads(checked(tally, "cortiq-run", [
            os.path.join(args.bin, "cortiq-run"), artifact, "-p", PROMPT, "-n", "32", "--temp", "0", "--json"]).stdout)

        libdir = next(folder for folder, _, files in os.walk(prefix) if "libcortiq.so" in files)
        env = dict(os.environ, PKG_CONFIG_PATH=os.path.join(libdir, "pkgconfig"), LD_LIBRARY_PATH=libdir)
        source = program("c")
        tally.check("the C program has 40 lines", "" if len(source.splitlines()) <= 40 else f"it has {len(source.splitlines())}")
        write(scratch.path("c/generate.c"), source)
        flags = checked(tally, "pkg-config", ["pkg-config", "--cflags", "--libs", "cortiq"], env=env).stdout.split()
        checked(tally, "cc", ["cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", scratch.path("c/generate.c"), *flags, "-o",
                              scratch.path("c/generate")], env=env)
        said = checked(tally, "the C program", [scratch.path("c/generate"), artifact, PROMPT], env=env).stdout
        tokens = len(answer["tokens"])
        tally.check("the C program says what cortiq-run says",
                    "" if said == f"{answer['text']}\n{tokens} tokens\n" else f"{said!r} instead of {answer['text']!r} and {tokens}")
        refused = harness.run([scratch.path("c/generate"), model, PROMPT], env=env)
        tally.check("a model that is no artifact is refused", "" if refused.returncode == 2 and refused.stderr.count("\n") == 1 else
                    f"exit {refused.returncode}: {refused.stderr}")

        write(scratch.path("cpp/chat.cpp"), program("cpp"))
        write(scratch.path("cpp/CMakeLists.txt"), program("cmake"))
        checked(tally, "find_package", ["cmake", "-S", scratch.path("cpp"), "-B", scratch.path("cpp/build"), f"-DCMAKE_PREFIX_PATH={prefix}"])
        checked(tally, "cmake --build", ["cmake", "--build", scratch.path("cpp/build")])
        first = checked(tally, "the C++ program", [scratch.path("cpp/build/chat"), artifact]).stdout
        again = checked(tally, "the C++ program again", [scratch.path("cpp/build/chat"), artifact]).stdout
        tally.check("the same seed says the same", "" if first == again and first.strip() else f"{first!r} and {again!r}")

        names = subprocess.run(["nm", "-D", "--defined-only", os.path.join(libdir, "libcortiq.so")], capture_output=True, text=True,
                               check=True).stdout.split("\n")
        with open(os.path.join(ROOT, "api", "cortiq.h")) as file:
            declared = set(re.findall(r"CORTIQ_API [^;(]*?(cortiq_\w+)\(", file.read()))
        exported = {line.split()[-1].split("@")[0] for line in names if " T " in line}
        tally.check("the library exports what cortiq.h declares", "" if exported == declared else
                    f"only exported {sorted(exported - declared)}, only declared {sorted(declared - exported)}")
        tally.check("every name has a version", "" if all(line.endswith("@@CORTIQ_0") for line in names if " T " in line) else "one has none")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
