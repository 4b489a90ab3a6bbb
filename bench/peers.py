#!/usr/bin/env python3
"""Compares cortiq with llama.cpp and ik_llama.cpp on the same GGUF files in one run, engines interleaved.

  bench/peers.py MODEL.gguf... [--llama-bench PATH] [--ik-bench PATH] [--bin DIR] [--threads 8,4,1] [--rounds 5] [--json OUT]
  bench/peers.py MODEL.gguf... --device 0 --by report [--gpu-bench NAME=PATH]... [--threads 4] [--rounds 3]

Peers take part when their llama-bench is named; docs/performance.md has the recipe, nothing of them is part of this project.
Every round measures each engine once with each number of threads, in turn, odd rounds backwards; the table gives median and range over
rounds and the ratio of medians to the best peer's. After all rounds the first engine is measured once more with each number of threads:
the row "drift" has that figure and its ratio to the engine's median, which is what the machine changed.

How a speed is taken:
  --by difference   CPU-seconds at one thread, wall clock at several: a process that does the work --repeat times more, minus one
                    that does it once. Loading, repacking and preemption by other work cancel out, so at one thread the figure
                    holds on a machine whose cores are shared. On shared cores, several threads say little.
  --by report       what the engines report themselves, prefill and decode from one process: for quiet machines, where a model of
                    gigabytes should not be loaded four times a round. The CPU-seconds beside are the whole process's.

On a GPU, --device, cortiq runs there, and every --gpu-bench is a llama-bench whose folder holds one back end (built as loadable modules); they
get all layers (-ngl 99). Each engine that runs there has one process before the rounds that does the same and is not counted: the first
process of a model makes its pipelines, ours and theirs alike, and what they keep on disk serves the following ones.

A machine without cortiq-compile takes artifacts made elsewhere, --artifact, one for each model in the same order. Those without
weights get random ones: then the peers' files are of the same shape (cortiq-bench --synthetic SPEC -o MODEL.gguf), not of the same bits.
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

PHASES = ("prefill", "decode")


def ran(command):
    """The finished process; ends the program when the command cannot be run."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    except OSError as why:
        stop(f"cannot run {command[0]}: {why.strerror}")


def spent(command):
    """(CPU seconds, wall seconds, standard output) of one run; ends the program when the command fails."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    result = ran(command)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        stop(f"{' '.join(command)} ended with {result.returncode}: {last}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, result.stdout


def stop(sentence):
    print(f"peers.py: {sentence}", file=sys.stderr)
    sys.exit(2)


class LlamaBench:
    """llama-bench repeats a test -r times after one load and one warm-up, so two values of -r differ by whole tests."""

    def __init__(self, name, path, flags, model, on_gpu=False):
        self.name, self.base, self.on_gpu = name, [path, "-m", model, *flags], on_gpu

    def command(self, work, threads, times):
        return [*self.base, "-t", str(threads), "-r", str(times), "-p", str(work.get("prefill", 0)), "-n", str(work.get("decode", 0))]

    def report(self, work, threads, times):
        cpu, _, text = spent([*self.command(work, threads, times), "-o", "json"])
        rates = {}
        for row in json.loads(text[text.index("["):]):
            rates["prefill" if row["n_prompt"] else "decode"] = statistics.median(row["samples_ts"])
        return rates, cpu


class Cortiq:
    """cortiq-bench runs an artifact that is compiled here from the same file, or was made elsewhere."""

    def __init__(self, bin_dir, model, numerics, artifact, device, scratch):
        self.name = "cortiq" if numerics == "fast" else f"cortiq {numerics}"
        self.about, self.on_gpu = artifact or f"{numerics}, compiled here", bool(device)
        self.base = [os.path.join(bin_dir, "cortiq-bench"), *(["--device", device] if device else [])]
        if artifact:
            self.base += [artifact]
            short = [*self.base, "--prefill", "1", "--decode", "0", "--repeat", "1", "--no-machine"]
            self.base += ["--fill", "1"] if "--weights=none" in ran(short).stderr else []
            return
        made = os.path.join(scratch, f"{os.path.basename(model)}.{numerics}.cqa")
        cpu, wall, _ = spent([os.path.join(bin_dir, "cortiq-compile"), model, "-o", made, f"--numerics={numerics}",
                              *(["--target=vulkan"] if device else [])])
        self.about += f" in {wall:.2f} s ({cpu:.2f} CPU-seconds)"
        self.base += [made]

    def command(self, work, threads, times):
        return [*self.base, "--no-machine", "--threads", str(threads), "--repeat", str(times), "--prefill", str(work.get("prefill", 0)),
                "--decode", str(work.get("decode", 0))]

    def report(self, work, threads, times):
        cpu, _, text = spent([*self.command(work, threads, times), "--json"])
        found = json.loads(text)
        return {phase: found[phase]["median_tokens_per_second"] for phase in work}, cpu


def by_difference(engine, work, threads, repeat):
    """Tokens a second by phase: CPU-seconds at one thread, wall-clock seconds otherwise."""
    which = 0 if threads == 1 else 1
    rates = {}
    for phase, tokens in work.items():
        once = spent(engine.command({phase: tokens}, threads, 1))[which]
        more = spent(engine.command({phase: tokens}, threads, 1 + repeat))[which]
        rates[phase] = repeat * tokens / max(more - once, 1e-9)
    return rates, None


def measure(engine, work, threads, args):
    if args.by == "difference":
        return by_difference(engine, work, threads, args.repeat)
    return engine.report(work, threads, args.repeat)


def compare(model, artifact, args, scratch):
    """Rows of one model."""
    engines = []
    if args.llama_bench:
        engines.append(LlamaBench("llama.cpp", args.llama_bench, [], model))
    if args.ik_bench:
        # Its weights repacked at load help decoding and harm prefill: the better of the two counts, phase by phase.
        engines.append(LlamaBench("ik_llama repacked", args.ik_bench, ["-rtr", "1", "-fmoe", "1"], model))
        engines.append(LlamaBench("ik_llama", args.ik_bench, ["-fmoe", "1"], model))
    engines += [LlamaBench(name, path, ["-ngl", "99"], model, on_gpu=True) for name, path in args.gpu_benches]
    peers = {engine.name for engine in engines}
    for numerics in args.numerics.split(","):
        engines.append(Cortiq(args.bin, model, numerics, artifact, args.device, scratch))
        print(f"{os.path.basename(model)}: {engines[-1].name} is {engines[-1].about}", file=sys.stderr)
    work = {phase: getattr(args, phase) for phase in PHASES if getattr(args, phase)}
    for engine in engines:
        if engine.on_gpu:
            engine.report(work, args.thread_list[0], 1)
    samples, cpu = {}, {}
    for turn in range(args.rounds):
        for threads in args.thread_list:
            # Odd rounds go backwards, so that a drift of the machine does not favour whoever comes first.
            for engine in engines if turn % 2 == 0 else reversed(engines):
                rates, seconds = measure(engine, work, threads, args)
                for phase, rate in rates.items():
                    samples.setdefault((threads, phase, engine.name), []).append(rate)
                cpu.setdefault((threads, engine.name), []).append(seconds)
        print(f"{os.path.basename(model)}: round {turn + 1} of {args.rounds}, load {os.getloadavg()[0]:.1f}", file=sys.stderr)
    rows = []
    for threads in args.thread_list:
        again, _ = measure(engines[0], work, threads, args)
        for phase, tokens in work.items():
            medians = {engine.name: statistics.median(samples[threads, phase, engine.name]) for engine in engines}
            best = max((medians[name] for name in peers), default=None)
            for engine in engines:
                unit = "tokens / CPU-second" if threads == 1 and args.by == "difference" else "tokens / second"
                row = {"model": os.path.basename(model), "phase": phase, "tokens": tokens, "threads": threads, "engine": engine.name, "unit": unit,
                       "median": medians[engine.name], "ratio": medians[engine.name] / best if best else None,
                       "samples": samples[threads, phase, engine.name]}
                if args.by == "report":
                    row["process_cpu_seconds"] = statistics.median(cpu[threads, engine.name])
                rows.append(row)
            rows.append({**rows[-len(engines)], "engine": f"drift of {engines[0].name}", "median": again[phase], "ratio": again[phase] / medians[engines[0].name],
                         "samples": [again[phase]]})
    return rows


def print_table(rows):
    print(f"{'model':28} {'phase':13} {'threads':>7}  {'engine':26} {'median':>8} {'range':>19}  {'unit':20} {'ratio':>6}")
    for row in rows:
        spread = f"{min(row['samples']):.1f}–{max(row['samples']):.1f}"
        ratio = f"{row['ratio']:.2f}" if row["ratio"] else ""
        print(f"{row['model'][:28]:28} {row['phase'] + ' ' + str(row['tokens']):13} {row['threads']:7}  {row['engine']:26} {row['median']:8.1f} "
              f"{spread:>19}  {row['unit']:20} {ratio:>6}")


def processor():
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {len(names)} CPUs"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.gguf")
    parser.add_argument("--llama-bench", help="llama.cpp's program")
    parser.add_argument("--ik-bench", help="ik_llama.cpp's program")
    parser.add_argument("--gpu-bench", action="append", default=[], metavar="NAME=PATH", help="llama.cpp's program with one back end for GPUs; NAME is what the table calls it")
    parser.add_argument("--device", help="the GPU that cortiq runs on, as in cortiq-bench --device; peers choose theirs by themselves")
    parser.add_argument("--bin", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bin"))
    parser.add_argument("--artifact", action="append", default=[], help="use this artifact for the model in the same place")
    parser.add_argument("--prefill", type=int, default=512)
    parser.add_argument("--decode", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--by", choices=("difference", "report"), default="difference")
    parser.add_argument("--repeat", type=int, default=2, help="by difference: how much more work the longer run does; by report: repetitions in a process")
    parser.add_argument("--threads", default="1,2", help="numbers of threads")
    parser.add_argument("--numerics", default="fast", help="arms of cortiq, comma-separated: fast, exact")
    parser.add_argument("--json", help="write every sample there")
    args = parser.parse_args()
    try:
        args.thread_list = [int(count) for count in args.threads.split(",")]
    except ValueError:
        stop(f"--threads is numbers with commas between, not '{args.threads}'")
    if min(args.thread_list) < 1 or args.rounds < 1 or args.repeat < 1 or min(args.prefill, args.decode) < 0 or args.prefill + args.decode == 0:
        stop("--threads, --rounds and --repeat are at least 1, and one of --prefill and --decode is")
    args.gpu_benches = [tuple(bench.split("=", 1)) for bench in args.gpu_bench]
    if any(len(bench) != 2 or not all(bench) for bench in args.gpu_benches):
        stop("--gpu-bench is a name and a program, as in Vulkan=llama/vulkan/llama-bench")
    if args.artifact and (len(args.artifact) != len(args.models) or args.numerics != "fast"):
        stop("--artifact is given once for each model, and --numerics not at all")
    for tool in ("cortiq-bench",) if args.artifact else ("cortiq-bench", "cortiq-compile"):
        if not (os.path.isfile(os.path.join(args.bin, tool)) and os.access(os.path.join(args.bin, tool), os.X_OK)):
            stop(f"{args.bin} has no {tool}; name the folder of the built programs with --bin")
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for i, model in enumerate(args.models):
            rows += compare(model, args.artifact[i] if args.artifact else None, args, scratch)
    print(processor())
    print_table(rows)
    if args.json:
        with open(args.json, "w") as out:
            json.dump({"processor": processor(), "by": args.by, "rows": rows}, out, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
