#!/usr/bin/env python3
"""Command lines that make no sense, outputs that cannot be written, and what --help and --version say, for every program."""
import json
import os

import harness

PROGRAMS = ("cortiq-bench", "cortiq-compile", "cortiq-convert", "cortiq-inspect", "cortiq-opt", "cortiq-run", "cortiq-serve", "cortiq-skill")
FULL = "/dev/full"  # a device on which every write fails

# (program, options, words of the sentence); ARTIFACT stands for a compiled model.
REFUSED = [
    ("cortiq-run", ("ARTIFACT", "-p", "a", "-n", "-1"), ("--max-tokens", "'-1'")),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "-n", "1.5"), ("--max-tokens", "'1.5'")),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--seed", "18446744073709551616"), ("--seed", "18446744073709551616'")),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--seed", "-1"), ("--seed", "'-1'")),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--top-k", "-1"), ("--top-k",)),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--threads", "-1"), ("--threads",)),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--max-context", "0"), ("--max-context",)),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--system", "Be brief."), ("--system", "--chat")),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--tokens", "1"), ("exclude each other",)),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--backend", "reference"), ("the CMF or GGUF file instead",)),
    ("cortiq-bench", ("MODEL",), ("not an artifact", "cortiq-compile MODEL -o")),
    ("cortiq-bench", ("ARTIFACT", "--prefill", "-1"), ("--prefill", "'-1'")),
    ("cortiq-bench", ("ARTIFACT", "--prefill", "18446744073709551615"), ("--prefill",)),
    ("cortiq-bench", ("ARTIFACT", "--decode", "x"), ("--decode",)),
    ("cortiq-bench", ("ARTIFACT", "--repeat", "0"), ("--repeat",)),
    ("cortiq-bench", ("ARTIFACT", "--prefill", "0", "--decode", "0"), ("nothing to measure",)),
    ("cortiq-bench", ("ARTIFACT", "--fill", "-3"), ("--fill",)),
    ("cortiq-bench", ("ARTIFACT", "--shape", "2x32"), ("--shape",)),
    ("cortiq-bench", ("ARTIFACT", "--numerics", "exact"), ("--numerics",)),
    ("cortiq-run", ("ARTIFACT", "-p", "a", "--gpu-experts", "bank"), ("--gpu-experts", "compiled already")),
    ("cortiq-run", ("MODEL", "-p", "a", "--target", "x86-64-v3", "--gpu-experts", "bank"), ("add vulkan to --target",)),
    ("cortiq-bench", ("ARTIFACT", "--gpu-experts", "bank"), ("--gpu-experts", "--synthetic")),
    ("cortiq-bench", ("ARTIFACT", "--bandwidth"), ("FILE", "--bandwidth")),
    ("cortiq-bench", ("--bandwidth", "--json"), ("--json", "--bandwidth")),
    ("cortiq-bench", ("--gemv", "cmf:q4tp", "--shape", "2x32", "--weights", "w", "--x", "x", "-o", "y", "--decode", "4"), ("--decode", "--gemv")),
    ("cortiq-compile", ("ARTIFACT", "-o", "x.cqa", "-j", "many"), ("-j", "'many'")),
    ("cortiq-compile", ("ARTIFACT", "-o", "x.cqa", "-j", "0"), ("-j", "'0'")),
    ("cortiq-compile", ("ARTIFACT", "-o", "x.cqa", "-j1025"), ("-j", "'1025'")),
    ("cortiq-compile", ("ARTIFACT", "-o", "x.cqa", "--emit=poem"), ("--emit", "'poem'")),
    ("cortiq-compile", ("ARTIFACT", "-o", "x.cqa", "--max-context=-1"), ("--max-context", "'-1'")),
    ("cortiq-compile", ("ARTIFACT", "-o", "x.cqa", "--max-batch=1e3"), ("--max-batch", "'1e3'")),
    ("cortiq-compile", ("ARTIFACT", "-o", "x.cqa", "--gpu-range=4294967296"), ("--gpu-range", "4294967295")),
    ("cortiq-compile", ("MODEL", "-o", "x.cqa", "--gpu-range", "1000"), ("--gpu-range", "add vulkan to --target")),
    ("cortiq-compile", ("MODEL", "-o", "x.cqa", "--task", "nap"), ("no task 'nap'; it has: none",)),
    ("cortiq-inspect", ("ARTIFACT", "--verify", "--disasm"), ("exclude each other",)),
    ("cortiq-serve", ("ARTIFACT", "--numa", "1"), ("--numa",)),
    ("cortiq-skill", ("list", "ARTIFACT"), ("wrong magic", "cortiq-convert")),
]

# What has to fail where standard output is full.
WRITERS = [("cortiq-run", ("ARTIFACT", "-p", "a", "-n", "2")), ("cortiq-run", ("ARTIFACT", "-p", "a", "-n", "2", "--json")),
           ("cortiq-run", ("ARTIFACT", "--verify")), ("cortiq-run", ("--doctor",)), ("cortiq-bench", ("ARTIFACT", "--prefill", "4", "--decode", "2", "--repeat", "1")),
           ("cortiq-bench", ("ARTIFACT", "--prefill", "4", "--decode", "2", "--repeat", "1", "--json")), ("cortiq-bench", ("--bandwidth",)),
           ("cortiq-inspect", ("ARTIFACT",)), ("cortiq-inspect", ("--json", "ARTIFACT")), ("cortiq-inspect", ("--disasm", "ARTIFACT")),
           ("cortiq-inspect", ("--json", "MODEL")), ("cortiq-compile", ("--target", "help")), ("cortiq-compile", ("MODEL", "--emit=cmf")),
           ("cortiq-compile", ("MODEL", "--emit=asm"))]


def call(args, program, options):
    names = {"ARTIFACT": args.artifact, "MODEL": args.model}
    return [os.path.join(args.bin, program), *(names.get(option, option) for option in options)]


def check_refused(tally, args, scratch):
    for program, options, words in REFUSED:
        result = harness.run(call(args, program, options), cwd=scratch.folder)
        lacking = [word for word in words if word not in result.stderr]
        tally.check(f"{program} {' '.join(options)}",
                    harness.why_not_refusal(result) or (f"{lacking} not in: {result.stderr.strip()}" if lacking else None))
    left = [name for name in os.listdir(scratch.folder) if name.startswith("x.cqa")]
    tally.check("refusals leave nothing", left)


def check_full(tally, args):
    if not os.path.exists(FULL):
        tally.skip(f"{FULL} does not exist")
        return
    for program, options in WRITERS + [(name, (option,)) for name in PROGRAMS for option in ("--help", "--version")]:
        with open(FULL, "w", encoding="utf-8") as full:
            result = harness.run(["sh", "-c", 'exec "$@" >/dev/full', "sh", *call(args, program, options)])
        wrong = None
        lines = result.stderr.strip().splitlines()
        if result.returncode != 2:
            wrong = f"exit status {result.returncode}, expected 2: {lines[:2]}"
        elif not lines or "standard output cannot be written" not in lines[-1]:
            wrong = f"no sentence about the output: {lines[:2]}"
        tally.check(f"full output: {program} {' '.join(options)}", wrong)


def check_help(tally, args):
    for program in PROGRAMS:
        version, text = (harness.run(call(args, program, (option,))) for option in ("--version", "--help"))
        wrong = harness.why_not_success(version) or harness.why_not_success(text)
        if not wrong and (program not in version.stdout or "LLVM version" in version.stdout or len(version.stdout.strip().splitlines()) != 1):
            wrong = f"--version says {version.stdout[:80]!r}"
        if not wrong and ("amdgpu" in text.stdout or "aarch64" in text.stdout):
            wrong = "--help lists options of LLVM's code generators"
        tally.check(f"{program} --help and --version", wrong)


def check_chat_json(tally, args):
    result = harness.run(call(args, "cortiq-run", ("ARTIFACT", "--chat", "-p", "hi", "-n", "2", "--json")))
    wrong = harness.why_not_success(result)
    if not wrong:
        answer = json.loads(result.stdout)
        lacking = {"tokens", "text", "finish_reason", "usage", "timings"} - set(answer)
        wrong = f"lacks {sorted(lacking)}" if lacking else None
        wrong = wrong or (None if answer["timings"]["decode_ms"] >= 0 and answer["usage"]["total_tokens"] >= 2 else f"{answer}")
    tally.check("--chat --json has what --json has", wrong)


def check_disassembly(tally, args):
    """Constants behind a kernel's instructions are shown as data: nothing in a listing is undecodable."""
    result = harness.run(call(args, "cortiq-inspect", ("--disasm", "ARTIFACT")))
    if "needs objdump" in result.stderr:
        tally.skip("objdump is not installed")
        return
    wrong = harness.why_not_success(result)
    lines = result.stdout.splitlines()
    if not wrong and any("(bad)" in line for line in lines):
        wrong = "has (bad)"
    # Behind the last instruction, `ret`, stand padding and, under their own symbol, constants.
    if not wrong and not any("<constants>:" in line for line in lines):
        wrong = "no constants are marked as such"
    inside = False
    for line in lines if not wrong else []:
        inside = ">:" in line and "<constants>" in line or (inside and ">:" not in line)
        if inside and "\tv" in line:
            wrong = f"constants decoded as code: {line.strip()}"
            break
    tally.check("--disasm shows constants as data", wrong)


def check_unknown_pre_tokenizer(tally, args, scratch):
    """An unknown pre-tokenizer is never guessed: ids work, text is refused by the name in the file."""
    source = open(args.model, "rb").read()
    model = scratch.path("pre.gguf")
    if source.count(b"qwen2") != 1:
        tally.check("the tiny model names its pre-tokenizer once", f"{source.count(b'gpt-2')} times")
        return
    with open(model, "wb") as out:
        out.write(source.replace(b"qwen2", b"qwen9"))
    artifact = scratch.path("pre.cqa")
    compiled = harness.run(call(args, "cortiq-compile", (model, "-o", artifact)))
    tally.check("unknown pre-tokenizer: compiling names it", harness.why_not_success(compiled) or (None if "'qwen9'" in compiled.stderr else compiled.stderr))
    for label, file in (("artifact", artifact), ("model", model)):
        ids = harness.run(call(args, "cortiq-run", (file, "--tokens", "1,2", "-n", "1")), env=args.env)
        tally.check(f"unknown pre-tokenizer: ids run ({label})", harness.why_not_success(ids))
    for options in (("-p", "a"), ("--chat", "-p", "a")):
        result = harness.run(call(args, "cortiq-run", (artifact, *options)))
        tally.check(f"unknown pre-tokenizer: {options[0]} is refused by name",
                    harness.why_not_refusal(result) or (None if "'qwen9'" in result.stderr and "--tokens" in result.stderr else result.stderr))
    here, there = (open(p, "rb").read() for p in (artifact, scratch.path("elsewhere.cqa"))) if move_and_compile(args, scratch, model) else (b"", b"x")
    tally.check("unknown pre-tokenizer: the artifact does not tell where the model lay", None if here == there else "the bytes differ")


def move_and_compile(args, scratch, model):
    folder = scratch.path("a folder")
    os.mkdir(folder)
    moved = os.path.join(folder, os.path.basename(model))
    os.rename(model, moved)
    return harness.run(call(args, "cortiq-compile", (moved, "-o", scratch.path("elsewhere.cqa")))).returncode == 0


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, *PROGRAMS)
    tally = harness.Tally()
    models = harness.tiny_models()
    with harness.Scratch() as scratch:
        args.env = dict(os.environ, XDG_CACHE_HOME=scratch.path("cache"))
        case = next(c for c in models.CASES if c.name == "llama-q4_0.gguf")
        args.model = models.write(case, scratch.folder)
        args.artifact = scratch.path("tiny.cqa")
        compiled = harness.run(call(args, "cortiq-compile", (args.model, "-o", args.artifact)))
        tally.check("the tiny model compiles", harness.why_not_success(compiled))
        check_refused(tally, args, scratch)
        check_full(tally, args)
        check_help(tally, args)
        check_chat_json(tally, args)
        check_disassembly(tally, args)
        check_unknown_pre_tokenizer(tally, args, scratch)
    return tally.finish()


if __name__ == "__main__":
    raise SystemExit(main())
