#!/usr/bin/env python3
"""The same model gives the same bytes, whatever the number of threads, the place, the environment and the processor: compiled again
and again under different circumstances, and held against hashes that were made on another machine (test/cases/reproducible.json).

    reproducible_test.py --bin build/bin --renew     writes these hashes anew: after a change of what the compiler makes
    reproducible_test.py --bin FOLDER --make OUT     only compiles what has hashes and prints them (for a machine without the rest)
"""
import hashlib
import json
import os
import resource
import shutil
import struct
import sys

import harness

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
RECORD = os.path.join(harness.CASES, "reproducible.json")
#: What shapes an artifact's bytes. A record made of other sources says nothing about these.
SOURCES = ("codegen", "compiler", "dialects", "formats", "runtime/text", "shaders", "test/cases", "tools/cortiq-compile")
TARGETS = ("x86-64-v3", "avx512vnni", "amx", "armv8")
#: Its shaders also depend on which compilers for them were there when the project was built.
ALL_TARGETS = TARGETS + ("vulkan",)
#: Compiled under every circumstance.
TARGET = "x86-64-v3,avx512vnni"
SECTIONS = ("code", "manifest", "program", "tokenizer", "provenance", "weights")


def models():
    m = harness.tiny_models()
    return (m.Case("llama", "gguf", ("q4_k", "q6_k", "q8_0"), m.BY256, label="same"),
            m.Case("qwen3", "cmf", ("q4tp",), m.BY256, label="same"))


def content_hash(path):
    """Of all that the compiler made of the model. The provenance is left out: it names the commit."""
    with open(path, "rb") as file:
        data = file.read()
    out = hashlib.blake2b(digest_size=16)
    for i, name in enumerate(SECTIONS):
        offset, size = struct.unpack_from("<QQ", data, 1024 + 24 + 16 * i)
        if name != "provenance":
            out.update(data[offset:offset + size])
    return out.hexdigest()


def sources_hash():
    out = hashlib.blake2b(digest_size=16)
    for top in SOURCES:
        for folder, folders, names in os.walk(os.path.join(ROOT, top)):
            folders[:] = sorted(f for f in folders if f not in ("target", "__pycache__"))
            for name in sorted(names):
                if os.path.join(folder, name) != RECORD and not name.endswith((".md", ".pyc")):
                    out.update(os.path.relpath(os.path.join(folder, name), ROOT).encode() + b"\0")
                    with open(os.path.join(folder, name), "rb") as file:
                        out.update(hashlib.blake2b(file.read(), digest_size=16).digest())
    return out.hexdigest()


class Compiler:
    def __init__(self, args, folder):
        self.program = os.path.join(os.path.abspath(args.bin), "cortiq-compile")
        self.folder = folder
        self.number = 0

    def __call__(self, model, target, *flags, wrap=(), cwd=None, env=None, before=None):
        self.number += 1
        out = os.path.join(self.folder, f"made{self.number}.cqa")
        result = harness.run([*wrap, self.program, model, "-o", out, "--target", target, *flags], timeout=300, cwd=cwd,
                             env={**os.environ, **(env or {})}, preexec_fn=before)
        if why_not := harness.why_not_success(result):
            raise RuntimeError(f"{' '.join(wrap)} cortiq-compile {model} --target {target}: {why_not}")
        return out


def circumstances(scratch, model):
    """What must make no difference: a name, and how the compiler is called."""
    away = scratch.path("an other folder ü")
    os.mkdir(away)
    shutil.copy(model, away)
    name = os.path.basename(model)
    yield "one thread", {"flags": ("-j1",)}
    yield "two threads", {"flags": ("-j2",)}
    yield "seven threads", {"flags": ("-j7",)}
    yield "a relative path elsewhere", {"model": name, "cwd": away}
    yield "another temporary folder", {"env": {"TMPDIR": away, "HOME": "/nonexistent", "USER": "nobody", "HOSTNAME": "other"}}
    yield "another language and time", {"env": {"LC_ALL": "tr_TR.UTF-8", "LANG": "de_DE", "TZ": "Pacific/Apia", "SOURCE_DATE_EPOCH": "1"}}
    yield "a large environment", {"env": {f"FILLER_{i}": "x" * 1000 for i in range(100)}}
    yield "another umask", {"before": lambda: os.umask(0o077)}
    yield "a small stack", {"before": lambda: resource.setrlimit(resource.RLIMIT_STACK, (2 << 20, resource.RLIM_INFINITY))}
    if shutil.which("setarch"):
        yield "addresses that are always the same", {"wrap": ("setarch", os.uname().machine, "-R")}
    # The C library takes other code for its functions then, as on an older processor.
    yield "a C library for old processors", {"env": {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX512F,-AVX2,-AVX2_Usable,-AVX,-FMA,-FMA_Usable,-FMA4,-ERMS,-BMI2"}}


def check_circumstances(tally, scratch, compiler, model):
    plain = compiler(model, TARGET)
    wanted = open(plain, "rb").read()
    for name, how in circumstances(scratch, model):
        made = compiler(how.pop("model", model), TARGET, *how.pop("flags", ()), **how)
        tally.check(name, None if open(made, "rb").read() == wanted else "other bytes")
    # Its modules take seconds each time: once with what differs most.
    first, second = (open(compiler(model, "vulkan", *how), "rb").read() for how in (("-j1",), ("-j3",)))
    tally.check("for a GPU, one thread or three", None if first == second else "other bytes")
    return wanted


def check_processors(tally, compiler, model, wanted):
    """Emulated: none of the instructions that this machine may have more than another."""
    emulator = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
    if not emulator or os.uname().machine != "x86_64":
        tally.skip("an emulated processor: qemu-x86_64 is not installed")
        return
    made = compiler(model, TARGET, "-j1", wrap=(emulator, "-cpu", "Nehalem"))
    tally.check("an emulated older processor", None if open(made, "rb").read() == wanted else "other bytes")


def all_hashes(compiler, folder, targets=TARGETS):
    out = {}
    for case in models():
        model = harness.tiny_models().write(case, folder)
        for target in targets:
            out[f"{case.name} {target}"] = content_hash(compiler(model, target))
    return out


def check_record(tally, compiler, folder):
    with open(RECORD, encoding="utf-8") as file:
        record = json.load(file)
    found = all_hashes(compiler, folder)
    other = sorted(name for name in found if found[name] != record["artifacts"].get(name))
    if other and record["sources"] != sources_hash():
        tally.skip(f"{len(other)} hashes of another machine: the sources have changed since; renew them with test/e2e/reproducible_test.py "
                   "--bin build/bin --renew", len(other))
        other = set(other)
    for name in found:
        if not isinstance(other, set) or name not in other:
            tally.check(f"{name}: as on the machine of the record", None if found[name] == record["artifacts"].get(name) else "other bytes of the same sources")


def main():
    args = harness.arguments(__doc__, renew={"action": "store_true"}, make={"default": ""})
    harness.need_tools(args, "cortiq-compile")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        compiler = Compiler(args, scratch.folder)
        if args.renew or args.make:
            found = {"sources": sources_hash(), "artifacts": all_hashes(compiler, scratch.folder, ALL_TARGETS if args.make else TARGETS)}
            with open(args.make or RECORD, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
                file.write("\n")
            return 0
        check_record(tally, compiler, scratch.folder)
        model = harness.tiny_models().write(models()[0], scratch.folder)
        wanted = check_circumstances(tally, scratch, compiler, model)
        check_processors(tally, compiler, model, wanted)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
