#!/usr/bin/env python3
"""Artifacts compiled here for 64-bit Arm, run by the cross-built cortiq-run under emulation (CORTIQ_AARCH64_BIN names its folder).

The tokens are those that independent implementations recorded, on the plainest processor of each target; a processor that lacks a
feature is refused in a sentence; the program needs nothing beside it.
"""
import json
import os
import shutil
import sys

import harness

MODELS = ["llama-q8", "gemma3-q4tp", "qwen2_moe-q8", "qwen3-mxfp4"]
# Targets and the plainest processor that has each.
TARGETS = [("armv8", "cortex-a72"), ("dotprod", "cortex-a76"), ("i8mm", "max")]
MOST_BYTES = 12 << 20


def emulator():
    for name in ("qemu-aarch64-static", "qemu-aarch64"):
        if path := shutil.which(name):
            return path
    return harness.skip_all("qemu's user emulation of AArch64 is missing (tools/setup installs it)")


def tokens_of(emulated, artifact, expected):
    """The generated ids, and why there are none."""
    result = harness.run(emulated + [artifact, "--tokens", ",".join(map(str, expected["prompt_ids"])), "-n", str(len(expected["greedy_ids"])),
                                     "--temp", "0", "--ignore-eos", "--json"], timeout=300)
    why_not = harness.why_not_success(result)
    return (None, why_not) if why_not else (json.loads(result.stdout.splitlines()[0])["tokens"], None)


def main():
    args = harness.arguments(__doc__)
    folder = os.environ.get("CORTIQ_AARCH64_BIN", "")
    runner = os.path.join(folder, "cortiq-run")
    if not folder or not os.path.exists(runner):
        harness.skip_all("CORTIQ_AARCH64_BIN does not name a folder with a cross-built cortiq-run (cmake --preset aarch64)")
    harness.need_tools(args, "cortiq-compile")
    models = harness.need_fixtures(args, "models")
    qemu = emulator()
    tally = harness.Tally()
    size = os.path.getsize(runner)
    tally.check("size of the program", "" if size <= MOST_BYTES else f"{size} bytes, at most {MOST_BYTES}")

    with harness.Scratch() as scratch:
        artifacts = {}
        for i, model in enumerate(MODELS):
            with open(os.path.join(models, model + ".expect.json")) as f:
                expected = json.load(f)
            # Emulation is slow: each target runs every other model, all run the first.
            for target, cpu in TARGETS if i == 0 else TARGETS[i % len(TARGETS):][:1]:
                artifact = scratch.path(f"{model}.{target}.cqa")
                made = harness.run([os.path.join(args.bin, "cortiq-compile"), os.path.join(models, model + ".cmf"), "-o", artifact,
                                    "--target", target, "--numerics", "exact"])
                if why_not := harness.why_not_success(made):
                    tally.check(f"compile {model} for {target}", why_not)
                    continue
                artifacts[model, target] = artifact
                got, why_not = tokens_of([qemu, "-cpu", cpu, runner], artifact, expected)
                if got is not None and got != expected["greedy_ids"]:
                    why_not = f"tokens {got}, expected {expected['greedy_ids']}"
                tally.check(f"{model} for {target} on {cpu}", why_not)

        for target, cpu, lacking in (("dotprod", "cortex-a72", "asimddp"), ("i8mm", "cortex-a76", "i8mm")):
            if (MODELS[0], target) not in artifacts:
                continue
            refused = harness.run([qemu, "-cpu", cpu, runner, artifacts[MODELS[0], target], "--tokens", "1", "-n", "1"])
            said = refused.stderr.strip()
            tally.check(f"{target} on {cpu}", "" if refused.returncode == 2 and f"needs {lacking}" in said and "\n" not in said
                        else f"exit status {refused.returncode}, {said!r}")

        if os.geteuid() == 0 and (MODELS[0], "armv8") in artifacts:
            root = scratch.path("root")
            os.mkdir(root)
            for path, name in ((qemu, "qemu"), (runner, "cortiq-run"), (artifacts[MODELS[0], "armv8"], "model.cqa")):
                shutil.copy(path, os.path.join(root, name))
            alone = harness.run(["chroot", root, "/qemu", "-cpu", "cortex-a72", "/cortiq-run", "/model.cqa", "--tokens", "1,2", "-n", "2", "--json"])
            tally.check("in an otherwise empty root", harness.why_not_success(alone))
        else:
            tally.skip("an empty root needs root's rights")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
