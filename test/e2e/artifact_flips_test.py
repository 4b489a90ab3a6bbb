#!/usr/bin/env python3
"""Flips single bytes of header and programs of a tiny artifact of two targets: each is refused in one sentence, or changes nothing.

Runs the sanitized cortiq-run where CORTIQ_ASAN_BIN names a folder that has it, so that a read past an end does not go unseen.
"""
import json
import os
import random
import struct
import sys
from concurrent.futures import ThreadPoolExecutor

import harness

SEED = 3
RUN_FLAGS = ["--tokens", "5,6,7", "-n", "3", "--temp", "0", "--ignore-eos", "--json"]
WEIGHTS_OFFSET_AT = 1024 + 8 + 4 + 4 + 8 + 5 * 16  # ArtifactHeader.sections[kWeights].offset in formats/artifact/artifact_file.h


def artifact(args, scratch):
    models = harness.tiny_models()
    case = next(c for c in models.CASES if c.name == "qwen3-mixed.cmf")
    path = scratch.path("tiny.cqa")
    result = harness.run([os.path.join(args.bin, "cortiq-compile"), models.write(case, scratch.folder), "-o", path, "--target=x86-64-v3,avx512vnni"])
    if harness.why_not_success(result):
        sys.exit(f"compiling the tiny model failed: {harness.first_line(result)}")
    return path


def damages(raw, count):
    """(description, bytes) of `count` files that differ in one byte, a third of them in the first page."""
    rng = random.Random(SEED)
    (end,) = struct.unpack_from("<Q", raw, WEIGHTS_OFFSET_AT)
    for turn in range(count):
        at = rng.randrange(4096) if turn % 3 == 0 else rng.randrange(end)
        data = bytearray(raw)
        data[at] ^= rng.randrange(1, 256)
        yield f"byte {at} changed from {raw[at]:#04x} to {data[at]:#04x}", bytes(data)


def main():
    args = harness.arguments(__doc__, count={"type": int, "default": 2000, "help": "how many bytes to flip"},
                             asan_bin={"default": os.environ.get("CORTIQ_ASAN_BIN", ""), "help": "folder of sanitized programs"})
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    runner = os.path.join(args.asan_bin, "cortiq-run")
    if not args.asan_bin or not os.path.exists(runner):
        runner = os.path.join(args.bin, "cortiq-run")
        print("  note  no sanitized cortiq-run (CORTIQ_ASAN_BIN): the plain one is used")
    tally = harness.Tally()
    with harness.Scratch() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        raw = open(artifact(args, scratch), "rb").read()
        whole = harness.run([runner, scratch.path("tiny.cqa"), *RUN_FLAGS])
        tally.check("the whole artifact runs", harness.why_not_success(whole))
        if tally.failed:
            return tally.finish()
        expected = json.loads(whole.stdout)["tokens"]

        def attempt(numbered):
            number, (what, data) = numbered
            path = scratch.path(f"flip{number}.cqa")
            with open(path, "wb") as out:
                out.write(data)
            result = harness.run([runner, path, *RUN_FLAGS])
            os.remove(path)
            if result.returncode == 0:
                return what, None if json.loads(result.stdout)["tokens"] == expected else "ran, with other tokens"
            return what, harness.why_not_refusal(result)

        for what, why_not in pool.map(attempt, enumerate(damages(raw, args.count))):
            tally.check(what, why_not)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
