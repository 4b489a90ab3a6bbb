#!/usr/bin/env python3
"""Damaged and foreign files to every program: one sentence on stderr, exit status 2, no output, no crash.

Damages tiny generated models in every way below, and takes the recorded bad files of the fixtures where there are any.
"""
import json
import os
import random
import sys

import harness

SEED = 20
FLIPS = 40           # random single-bit flips of each model: refused, or harmless
NEEDS_WHOLE_MODEL = "load"


def calls(args, file, scratch):
    """(label, command, output file or None) of every way to hand `file` to a program."""
    tool = lambda name: os.path.join(args.bin, name)
    artifact, logits = scratch.output(".cqa"), scratch.output(".f32")
    yield "inspect", [tool("cortiq-inspect"), file], None
    yield "inspect --verify", [tool("cortiq-inspect"), "--verify", file], None
    yield "compile", [tool("cortiq-compile"), file, "-o", artifact], artifact
    yield "run", [tool("cortiq-run"), file, "--tokens", "1,2", "-n", "1"], None
    yield "run --logits", [tool("cortiq-run"), file, "--tokens", "1,2", "-n", "0", "--logits", logits], logits
    yield "run --backend=reference", [tool("cortiq-run"), file, "--backend=reference", "--tokens", "1,2", "-n", "1"], None
    yield "bench", [tool("cortiq-bench"), file], None
    if b"\0" in open_start(file):  # a text gets the parser's own diagnosis: sentence, line and caret
        yield "opt", [tool("cortiq-opt"), file], None


def open_start(file):
    """The bytes by which a file is told from text; a NUL for what is no file."""
    if not os.path.isfile(file):
        return b"\0"
    with open(file, "rb") as start:
        return start.read(4096) or b"\0"


def available(args, file, scratch):
    for label, command, output in calls(args, file, scratch):
        if os.path.exists(command[0]):
            yield label, command, output


def refused_by_all(tally, args, scratch, file, name):
    for label, command, output in available(args, file, scratch):
        tally.check(f"{name}: {label}", harness.why_not_refusal(harness.run(command, env=args.env), output))


def damaged(raw):
    """(what was done, bytes): damages that no reader may accept."""
    yield "empty", b""
    yield "one byte", raw[:1]
    yield "magic only", raw[:4]
    for cut in (16, 100, 127, 128, len(raw) // 4, len(raw) // 2, len(raw) - 1):
        yield f"cut to {cut} bytes", raw[:cut]
    yield "zeros", bytes(len(raw))
    yield "magic changed", b"XXXX" + raw[4:]
    yield "version changed", raw[:4] + (77).to_bytes(4, "little") + raw[8:]
    yield "ones after the magic", raw[:8] + b"\xff" * 64 + raw[72:]


def foreign():
    """(kind, bytes) of files that are no model at all."""
    yield "text", b"The quick brown fox jumps over the lazy dog.\n" * 100
    yield "json", json.dumps({"model": "none", "layers": list(range(1000))}).encode()
    yield "noise", random.Random(SEED).randbytes(65536)
    yield "elf", open(sys.executable, "rb").read(1 << 20)
    yield "zip", b"PK\x03\x04" + bytes(4096)


def check_generated(tally, args, scratch):
    models = harness.tiny_models()
    for case in (c for c in models.CASES if c.name in ("llama-q4tp.cmf", "llama-q4_0.gguf")):
        raw = open(models.write(case, scratch.folder), "rb").read()
        for what, data in damaged(raw):
            file = scratch.output("." + case.container)
            with open(file, "wb") as out:
                out.write(data)
            refused_by_all(tally, args, scratch, file, f"{case.container} {what}")
        check_flips(tally, args, scratch, case, raw)
    for what, data in foreign():
        for suffix in (".cmf", ".gguf", ".cqa", ""):
            file = scratch.output(suffix)
            with open(file, "wb") as out:
                out.write(data)
            refused_by_all(tally, args, scratch, file, f"{what} as '{suffix}'")
    refused_by_all(tally, args, scratch, scratch.path("missing.cmf"), "missing file")
    refused_by_all(tally, args, scratch, scratch.folder, "folder")


def check_flips(tally, args, scratch, case, raw):
    """One bit anywhere: a refusal in form, or a run that ends well. Nothing else."""
    rng = random.Random(SEED)
    head = 4096 if case.container == "cmf" else 8192
    for turn in range(FLIPS):
        at = rng.randrange(head if turn % 2 else len(raw))
        data = bytearray(raw)
        data[at] ^= 1 << rng.randrange(8)
        file = scratch.path(f"flip.{case.container}")
        with open(file, "wb") as out:
            out.write(data)
        for label, command, output in available(args, file, scratch):
            if label in ("inspect", "compile"):
                result = harness.run(command, env=args.env)
                why_not = None if result.returncode == 0 else harness.why_not_refusal(result, output)
                tally.check(f"{case.name} bit at byte {at} flipped: {label}", why_not)


def check_recorded(tally, args, scratch):
    """The bad files of the fixtures; `must_name` are words that the sentence has to hold."""
    for family in ("models", "models-gguf"):
        folder = os.path.join(args.fixtures, family, "bad")
        if not args.fixtures or not os.path.exists(folder):
            tally.skip(f"CORTIQ_FIXTURES does not name a folder with {family}/bad")
            continue
        for row in json.load(open(os.path.join(folder, "manifest.json"))):
            file = os.path.join(folder, row["file"])
            stage = row.get("stage") or NEEDS_WHOLE_MODEL
            for label, command, output in available(args, file, scratch):
                if not has_to_refuse(label, stage):
                    continue
                result = harness.run(command, env=args.env)
                why_not = harness.why_not_refusal(result, output)
                if "warning" in row["expect"] and result.returncode == 0:
                    # Compiling warns; whoever runs what is compiled already, or runs on ids alone, has nothing to warn of.
                    lacking = [word for word in row["must_name"] if word not in result.stderr] if label == "compile" else []
                    why_not = f"no warning that names {lacking}" if lacking else None
                elif not why_not and label == "compile" and row["expect"] == "error":
                    lacking = [word for word in row.get("must_name", []) if word not in result.stderr]
                    why_not = f"the sentence does not name {lacking}: {result.stderr.strip()}" if lacking else None
                tally.check(f"{family}/bad/{row['file']}: {label}", why_not)


def has_to_refuse(label, stage):
    """Which programs see a fault of the stage: everything a broken container, --verify a wrong hash, whoever runs a broken model."""
    if label.startswith("inspect"):
        return stage == "open" or (stage == "verify" and label == "inspect --verify")
    return stage != "verify"


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-inspect")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        args.env = dict(os.environ, XDG_CACHE_HOME=scratch.path("cache"))
        check_generated(tally, args, scratch)
        check_recorded(tally, args, scratch)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
