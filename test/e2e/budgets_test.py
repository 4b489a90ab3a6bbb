#!/usr/bin/env python3
"""What a user waits for and what it costs in memory, on the small real model: compile, start, memory at 2,048 tokens.

Times are the best of several runs, since other work on the machine only ever adds to them.
"""
import os
import re
import subprocess
import sys
import time

import harness

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
FIVE_TOKENS = "504,3575,282,4649,314"
COMPILE_SECONDS = 5.0
START_SECONDS = 0.150
MEMORY_MB = 150.0
CONTEXT = 2048
MAPPING = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)$")


def best(count, command):
    """Seconds of the fastest of `count` runs, and the first reason that one failed."""
    seconds = []
    for _ in range(count):
        began = time.perf_counter()
        why_not = harness.why_not_success(harness.run(command))
        seconds.append(time.perf_counter() - began)
        if why_not:
            return seconds[-1], why_not
    return min(seconds), None


def resident_beyond(pid, artifact):
    """MB that the process holds in memory, pages of the artifact's own mapping left out unless they are private copies."""
    total, of_artifact = 0, False
    with open(f"/proc/{pid}/smaps") as smaps:
        for line in smaps:
            mapping = MAPPING.match(line)
            if mapping:
                of_artifact = mapping.group(1) == artifact
            elif line.startswith("Anonymous:" if of_artifact else "Rss:"):
                total += int(line.split()[1])
    return total / 1024


def peak_memory(command, artifact):
    """The largest of resident_beyond() while the command runs, and why it failed if it did."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0.0
    while process.poll() is None:
        try:
            peak = max(peak, resident_beyond(process.pid, artifact))
        except OSError:  # it ended between poll and read
            break
        time.sleep(0.02)
    status = process.wait()
    return peak, f"exit status {status}" if status else None


def main():
    args = harness.arguments(__doc__, models=harness.MODELS)
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    model = harness.need_model(args, MODEL)
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        artifact = os.path.realpath(scratch.path("smollm2.cqa"))
        run = [os.path.join(args.bin, "cortiq-run"), artifact]

        def judge(what, measured, unit, budget):
            value, why_not = measured
            tally.check(what, why_not or (None if value < budget else f"{value:.3g} {unit}, budget {budget:g} {unit}"))
            tally.note(f"{what}: {value:.3g} {unit} of {budget:g}")

        judge("compile", best(2, [os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact]), "s", COMPILE_SECONDS)
        judge("start to first token", best(9, [*run, "--tokens", FIVE_TOKENS, "-n", "1", "--temp", "0", "--ignore-eos"]), "s", START_SECONDS)
        prompt = ",".join(str(100 + i % 1000) for i in range(CONTEXT - 16))
        long_run = [*run, "--tokens", prompt, "-n", "15", "--temp", "0", "--ignore-eos"]
        judge(f"memory beyond the weights at {CONTEXT} tokens", peak_memory(long_run, artifact), "MB", MEMORY_MB)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
