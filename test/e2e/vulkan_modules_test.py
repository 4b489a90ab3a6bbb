#!/usr/bin/env python3
"""A driver that refuses one shader, each in its turn: that one is named, once, and tokens stay the recorded ones. A dense model, and a
mixture of experts whose experts lie in a bank, in eight segments and in sixteen; of each every module that the driver is given, or without
CORTIQ_TEST_ALL every fourth."""
import os
import re
import sys

import vulkan_test

# Model, numerics, options of the compiler and of the run, and how many modules there are at least.
CASES = [("llama-q8", "fast", (), (), 12), ("qwen3_moe-q4tp", "exact", ("--gpu-experts=bank",), ("--bank-slots", "8"), 14),
         ("qwen3_moe-q4tp", "exact", ("--gpu-experts=bank-bf16",), ("--bank-slots", "14", "--bank-segments", "16"), 14)]
MOST = 80  # modules of any of them
STRIDE = 1 if os.environ.get("CORTIQ_TEST_ALL") else 4
REFUSED = re.compile(r"shader '([^']*)' was refused by")


def check_case(tally, args, name, numerics, compile_flags, run_flags, least, folder, environment):
    spec = vulkan_test.expectation(args, name)
    artifact = vulkan_test.compile_model(tally, args, name, numerics, folder, *compile_flags)
    if not artifact:
        return
    label = f"{name} {' '.join((*compile_flags, *run_flags))}"
    refused = []
    for number in range(1, MOST, STRIDE):
        count, result = vulkan_test.generate(args, artifact, spec, ["--device", "0", *run_flags],
                                             {**environment, "CORTIQ_GPU_FAULTS": f"pipeline={number}"})
        named = REFUSED.findall(result.stderr)
        if result.returncode == 0 and not named:  # that many there are not
            break
        vulkan_test.check_tokens(tally, f"{label}: {named[0] if named else number} refused", spec, count, result)
        tally.check(f"{label}: named once", len(named) != 1 and f"module {number}: {result.stderr}")
        refused += named
    tally.check(f"{label}: to the last module", not least // STRIDE <= len(refused) < MOST // STRIDE and f"{len(refused)}: {refused}")


def check_all(tally, args, folder, environment):
    quiet = {k: v for k, v in environment.items() if k != "VK_INSTANCE_LAYERS"}
    for case in CASES:
        check_case(tally, args, *case, folder, quiet)


if __name__ == "__main__":
    sys.exit(vulkan_test.run_layered(__doc__, check_all))
