#!/usr/bin/env python3
"""Compares cortiq with llama.cpp on one GGUF file in one run, engines interleaved.

Usage: peers.py MODEL.gguf --llama-bench PATH [--bin DIR] [--prefill 512] [--decode 64] [--rounds 5] [--json OUT]

The judged figure is tokens per CPU-second at one thread: the difference of user plus system time between a process that does the
work `--repeat` times more and one that does it once. Loading, repacking and preemption by other work cancel out in the
difference, so it holds on a machine whose cores are shared. Two threads are reported as tokens per second of wall clock,
again from a difference; on shared cores that figure says little.

Every round measures each engine once, in turn; the table gives the median and the range over rounds, and the ratio of medians.
llama.cpp is built by docs/performance.md's recipe; nothing of it is part of this project.
"""
import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time


def spent(command):
    """(CPU seconds, wall seconds) of one run; ends the program when the command fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        sys.exit(f"{' '.join(command)} ended with {result.returncode}: {result.stderr.strip()[-300:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


class LlamaCpp:
    """llama-bench repeats a test -r times after one load and one warm-up, so two values of -r differ by whole tests."""

    name = "llama.cpp"

    def __init__(self, path, model):
        self.base = [path, "-m", model]

    def command(self, phase, tokens, threads, times):
        work = ["-p", str(tokens), "-n", "0"] if phase == "prefill" else ["-p", "0", "-n", str(tokens)]
        return [*self.base, "-t", str(threads), "-r", str(times), *work]


class Cortiq:
    """cortiq-bench has the same flags; it runs an artifact compiled here from the same file."""

    def __init__(self, bin_dir, model, numerics, scratch):
        self.name = "cortiq" if numerics == "fast" else f"cortiq {numerics}"
        self.artifact = os.path.join(scratch, f"{numerics}.cqa")
        self.compile_cpu, self.compile_wall = spent([os.path.join(bin_dir, "cortiq-compile"), model, "-o", self.artifact, f"--numerics={numerics}"])
        self.base = [os.path.join(bin_dir, "cortiq-bench"), self.artifact]
        about = subprocess.run([*self.base, "--json", "--prefill", "1", "--decode", "1", "--repeat", "1"], capture_output=True, text=True, check=True)
        self.target = json.loads(about.stdout)["target"]

    def command(self, phase, tokens, threads, times):
        work = ["--prefill", str(tokens), "--decode", "0"] if phase == "prefill" else ["--prefill", "0", "--decode", str(tokens)]
        return [*self.base, "--threads", str(threads), "--repeat", str(times), *work]


def rate(engine, phase, tokens, threads, repeat):
    """Tokens a second: CPU-seconds at one thread, wall-clock seconds otherwise."""
    which = 0 if threads == 1 else 1
    once = spent(engine.command(phase, tokens, threads, 1))[which]
    more = spent(engine.command(phase, tokens, threads, 1 + repeat))[which]
    return repeat * tokens / max(more - once, 1e-9)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--llama-bench", required=True)
    parser.add_argument("--bin", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bin"))
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=2, help="how much more work the longer of two runs does")
    parser.add_argument("--threads", default="1,2", help="thread counts; the first is the judged one")
    parser.add_argument("--numerics", default="fast", help="arms of cortiq, comma-separated: fast, exact")
    parser.add_argument("--json", help="write every sample there")
    args = parser.parse_args()

    with tempfile.TemporaryDirectory() as scratch:
        engines = [LlamaCpp(args.llama_bench, args.model)]
        engines += [Cortiq(args.bin, args.model, numerics, scratch) for numerics in args.numerics.split(",")]
        plan = [(phase, tokens, int(threads)) for threads in args.threads.split(",")
                for phase, tokens in (("prefill", args.prefill), ("decode", args.decode)) if tokens]
        samples = {(step, engine.name): [] for step in plan for engine in engines}
        for turn in range(args.rounds):
            for step in plan:
                phase, tokens, threads = step
                # Odd rounds go backwards, so that a drift of the machine does not favour whoever comes first.
                for engine in engines if turn % 2 == 0 else reversed(engines):
                    samples[step, engine.name].append(rate(engine, phase, tokens, threads, args.repeat))
            print(f"round {turn + 1} of {args.rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
        for engine in engines[1:]:
            print(f"{engine.name}: target {engine.target}, compiled in {engine.compile_wall:.2f} s ({engine.compile_cpu:.2f} CPU-seconds)")

    print(f"{os.path.basename(args.model)} on {processor()}")
    print(f"{'phase':14} {'threads':>7}  {'engine':14} {'median':>8} {'range':>17}  {'unit':22} ratio")
    rows = []
    for step in plan:
        phase, tokens, threads = step
        peer = statistics.median(samples[step, engines[0].name])
        for engine in engines:
            values = samples[step, engine.name]
            unit = "tokens / CPU-second" if threads == 1 else "tokens / second (wall)"
            median = statistics.median(values)
            rows.append({"phase": phase, "tokens": tokens, "threads": threads, "engine": engine.name, "unit": unit, "median": median,
                         "ratio": median / peer, "samples": values})
            print(f"{phase + ' ' + str(tokens):14} {threads:7}  {engine.name:14} {median:8.1f} {min(values):8.1f}–{max(values):<8.1f}  {unit:22} {median / peer:.2f}")
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"model": os.path.basename(args.model), "processor": processor(), "rows": rows}, out, indent=1)
    return 0


def processor():
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(names)} CPUs"


if __name__ == "__main__":
    sys.exit(main())
