#!/usr/bin/env python3
"""Artifacts of several targets: each of them gives the tokens of an artifact of that one alone, and costs code and program only.

Dense models, experts, guesses ahead and skills; which target is taken, asked for and refused; listing, disassembly, verification,
the cache of cortiq-run, and artifacts without weights.
"""
import json
import os
import re
import sys

import harness

TARGETS = ["x86-64-v3", "avxvnni", "avx512vnni"]
TOKENS = ["--tokens", "5,9,200,31", "-n", "24", "--temp", "0", "--ignore-eos"]
# What else one target more may cost: rows of the manifest, names of kernels, unwind entries, and what alignment adds.
BYTES_A_KERNEL, BYTES_A_TARGET = 512, 16384


class Targets:
    def __init__(self, args, scratch, tally):
        self.args, self.scratch, self.tally = args, scratch, tally

    def call(self, name, *flags):
        return harness.run([os.path.join(self.args.bin, name), *flags], timeout=300)

    def tool(self, name, *flags):
        result = self.call(name, *flags)
        why_not = harness.why_not_success(result)
        if why_not:
            raise RuntimeError(f"{name} {' '.join(flags)}: {why_not}")
        return result

    def compile(self, model, targets, *flags):
        out = self.scratch.output(".cqa")
        self.tool("cortiq-compile", model, "-o", out, "--target=" + ",".join(targets), *flags)
        return out

    def list(self, artifact, *flags):
        return json.loads(self.tool("cortiq-inspect", "--json", artifact, *flags).stdout)

    def run(self, artifact, *flags):
        return json.loads(self.tool("cortiq-run", artifact, "--json", *TOKENS, *flags).stdout)

    def refused(self, label, words, name, *flags):
        result = self.call(name, *flags)
        self.tally.check(f"refused: {label}", harness.why_not_refusal(result) or (None if words in result.stderr else f"{result.stderr!r} lacks {words!r}"))


def check_model(t, name, model, compile_flags=(), run_flags=((),)):
    """Tokens and sizes of one model; returns its artifact of all targets."""
    all_targets = t.compile(model, TARGETS, "-j1", *compile_flags)
    with open(all_targets, "rb") as first, open(t.compile(model, TARGETS[::-1], "-j3", *compile_flags), "rb") as second:
        t.tally.check(f"{name}: the same bytes", None if first.read() == second.read() else "other threads and order give other bytes")
    listed = t.list(all_targets)
    alone = {target: t.compile(model, [target], *compile_flags) for target in TARGETS}
    t.tally.check(f"{name}: names", None if [held["name"] for held in listed["targets"]] == TARGETS else listed["targets"])
    for held in listed["targets"]:
        single = t.list(alone[held["name"]])
        same = single["weights"] == listed["weights"] and single["manifest"]["weights_root"] == listed["manifest"]["weights_root"]
        t.tally.check(f"{name} {held['name']}: weights", None if same else "other weights than alone")
        code, code_alone = (entry["code_bytes"] + entry["shared_code_bytes"] for entry in (held, single["targets"][0]))
        t.tally.check(f"{name} {held['name']}: code", None if code == code_alone else f"{code} bytes, alone {code_alone}")
        if not held["runnable"]:
            t.tally.skip(f"{name}: this machine lacks {held['name']}")
            continue
        for flags in run_flags:
            got, expected = t.run(all_targets, "--target", held["name"], *flags), t.run(alone[held["name"]], *flags)
            t.tally.check(f"{name} {held['name']} {' '.join(flags)}: tokens", None if got["tokens"] == expected["tokens"] else f"{got['tokens']}, alone {expected['tokens']}")
            t.tally.check(f"{name} {held['name']}: said", None if got["target"]["name"] == held["name"] and got["target"]["held"] == TARGETS else got["target"])
    more = os.path.getsize(all_targets) - os.path.getsize(alone[TARGETS[0]])
    room = sum(held["code_bytes"] + held["program_bytes"] + held["kernels"] * BYTES_A_KERNEL + BYTES_A_TARGET for held in listed["targets"][1:])
    t.tally.check(f"{name}: size", None if more <= room else f"{more} bytes more than with one target, {room} expected at most")
    return all_targets


def check_choice(t, artifact):
    """What is taken and said without a wish, and what cannot be had."""
    held = t.list(artifact)["targets"]
    best = [target["name"] for target in held if target["runnable"]][-1]
    result = t.call("cortiq-run", artifact, *TOKENS, "--stats")
    t.tally.check("stats", None if f" {best} (the best " in result.stderr else result.stderr)
    t.tally.check("stats: operations", None if re.search(r"\n\d+ steps on \d+ threads?, .*\n(.*\n)*  products, q8_row .* GB/s\n(.*\n)*  of it waiting ", result.stderr) else result.stderr)
    result = t.call("cortiq-run", artifact, *TOKENS, "--verbose")
    t.tally.check("verbose", None if f"target {best}: the best " in result.stderr else result.stderr[:200])
    t.tally.check("listed as taken", None if [target["name"] for target in held if target["taken"]] == [best] else held)
    t.tally.check("doctor", None if f"for {best} (the best " in t.tool("cortiq-run", "--doctor", artifact).stdout else "not said")
    for tool, flags in (("cortiq-run", TOKENS), ("cortiq-bench", ["--no-machine", "--prefill", "4", "--decode", "4"])):
        t.refused(f"{tool}: an unknown target", "it holds code for x86-64-v3, avxvnni and avx512vnni, not for 'z80'", tool, artifact, "--target", "z80", *flags)
    t.refused("inspect: an unknown target", "not for 'z80'", "cortiq-inspect", artifact, "--target", "z80")
    t.refused("inspect: a model has no targets", "is a model", "cortiq-inspect", t.model, "--target", "amx")
    tiles = t.compile(t.model, ["amx", "x86-64-v3"])
    if t.list(tiles)["targets"][1]["runnable"]:
        t.tally.skip("this machine has tiles")
        return
    t.refused("a target that cannot run", "'amx' cannot run here: its code needs amx_bf16", "cortiq-run", tiles, "--target", "amx", *TOKENS)
    taken = t.run(tiles)["target"]
    t.tally.check("the other one is taken", None if taken["name"] == "x86-64-v3" and "amx_int8" in taken["why"] else taken)
    only = t.compile(t.model, ["amx"])
    t.refused("nothing that can run", "--target native", "cortiq-run", only, *TOKENS)


def check_tools(t, artifact):
    listed = t.list(artifact)
    kernels = {kernel["target"] for kernel in listed["kernels"]}
    t.tally.check("kernels of all", None if kernels == set(TARGETS) else kernels)
    kernels = t.list(artifact, "--target", "avxvnni")["kernels"]
    t.tally.check("kernels of one", None if kernels and all(k["name"].endswith("_avxvnni") for k in kernels) else kernels)
    t.tally.check("verify", harness.why_not_success(t.call("cortiq-inspect", "--verify", artifact)))
    words = t.tool("cortiq-inspect", artifact).stdout
    t.tally.check("listing", None if "\ntargets\n  x86-64-v3 " in words else words)
    result = t.call("cortiq-inspect", "--disasm", artifact, "--target", "avxvnni")
    if "objdump" in result.stderr:
        t.tally.skip("objdump is not installed")
    else:
        good = "vpdpbusd" in result.stdout and "; gemv_" in result.stdout and "_avxvnni:" in result.stdout and "_v3:" not in result.stdout
        t.tally.check("disassembly of one", harness.why_not_success(result) or (None if good else result.stdout[:200]))


def check_compiler(t):
    out = t.scratch.output(".cqa")
    t.refused("a target named twice", "'avxvnni' twice", "cortiq-compile", t.model, "-o", out, "--target", "avxvnni,x86-64-v3,avxvnni")
    t.refused("an unknown target in a list", "no target 'z80'", "cortiq-compile", t.model, "-o", out, "--target", "avxvnni,z80")
    t.refused("text for several targets", "--emit is for one target", "cortiq-compile", t.model, "--emit=kernel", "--target", "avxvnni,x86-64-v3")
    cache = t.scratch.path("cache")
    flags = ["--cache", cache, "--target", "x86-64-v3,avx512vnni"]
    first, second = t.run(t.model, *flags), t.run(t.model, *flags)
    t.tally.check("cached", None if first["tokens"] == second["tokens"] and first["target"]["held"] == ["x86-64-v3", "avx512vnni"] else first["target"])
    t.tally.check("one entry in the cache", None if len(os.listdir(cache)) == 1 else os.listdir(cache))
    without = t.compile(t.model, TARGETS, "--weights=none")
    t.tally.check("verified without weights", harness.why_not_success(t.call("cortiq-inspect", "--verify", without)))
    result = t.tool("cortiq-bench", without, "--fill", "1", "--no-machine", "--json", "--prefill", "4", "--decode", "4", "--target", "x86-64-v3")
    t.tally.check("measured without weights", None if json.loads(result.stdout)["target"] == "x86-64-v3" else result.stdout)


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-inspect", "cortiq-run")
    models = harness.tiny_models()
    import tiny_drafts
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        t = Targets(args, scratch, tally)
        t.model = models.write(next(c for c in models.CASES if c.name == "qwen3-mixed.cmf"), scratch.folder)
        artifact = check_model(t, "mixed", t.model)
        check_choice(t, artifact)
        check_tools(t, artifact)
        check_compiler(t)
        for case in (c for c in tiny_drafts.CASES if c.name.startswith(("qwen3-q8_2f", "llama-q4_k"))):
            check_model(t, f"drafts {case.name}", tiny_drafts.write(case, scratch.folder), ["--numerics=exact"], (("--speculate", "on"), ("--speculate", "off")))
        fixtures = os.path.join(args.fixtures, "models")
        for name, flags in (("skills.cmf", (("--skill", "none"), ("--skill", "story"))), ("lfm2_moe-q4tp.cmf", ((), ("--memory", "256M")))):
            if args.fixtures and os.path.exists(os.path.join(fixtures, name)):
                check_model(t, name, os.path.join(fixtures, name), run_flags=flags)
            else:
                tally.skip(f"CORTIQ_FIXTURES does not name a folder with models/{name}")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
