#!/usr/bin/env python3
"""bench/pack.py and the program inside what it packs: from an empty folder, in an environment with nothing in it, tokens, speeds, clocks and peers
come out as rows in JSON and as a table; what does not fit the time is listed; wrong command lines are refused."""
import json
import os
import subprocess
import sys
import tarfile

import harness
import vulkan_test

PACK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "pack.py")
FIXTURE, MODEL, TARGET = "models/llama-q8", "tiny:q4_0", "x86-64-v3"
LIMIT = 600  # seconds, of which a quiet machine needs few
# A peer, and a GPU's monitor of before its reasons had their present name: it holds a slow clock by a cap of power.
LLAMA_BENCH = f"""#!{sys.executable}
import json
print(json.dumps([{{"n_prompt": 512, "samples_ts": [100]}}, {{"n_prompt": 0, "samples_ts": [10]}}]))
"""
NVIDIA_SMI = f"""#!{sys.executable}
import sys, time
if any("clocks_event_reasons" in word for word in sys.argv):
    sys.exit("no such field")
while True:
    print("345, 3201, 700.5, 61, 99, 0x0000000000000004", flush=True)
    if "-lms" not in sys.argv:
        break
    time.sleep(int(sys.argv[-1]) / 1000)
"""


def program(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o755)
    return path


class Packing:
    def __init__(self, tally, args, scratch):
        self.tally, self.args, self.scratch = tally, args, scratch
        self.has_gpu = bool(vulkan_test.devices(args))
        self.tools = os.path.dirname(program(scratch.path("tools/nvidia-smi"), NVIDIA_SMI))

    def pack(self, *flags, bin_dir=None):
        out = self.scratch.output(".tar.xz")
        return out, harness.run([sys.executable, PACK, "-o", out, "--bin", bin_dir or self.args.bin, "--fixtures", self.args.fixtures, *flags], timeout=900)

    def refusals(self):
        for flags, bin_dir, word in (((), self.scratch.folder, "no cortiq-run"), (("--fixture", "models/nobody"), None, "models/nobody"), (("--peer", "llama"), None, "--peer"),
                                     (("--peer", "llama=/no/llama-bench"), None, "/no/llama-bench"), (("--unit-test", "/no/test"), None, "/no/test")):
            out, result = self.pack(*flags, bin_dir=bin_dir)
            self.tally.check(f"pack.py {' '.join(flags)} is refused", harness.why_not_refusal(result, out) or (None if word in result.stderr else result.stderr))

    def usual_models(self):
        """The models of a package that nobody chose for can be made, for whatever target, and fixtures of that name are there."""
        sys.path.insert(0, os.path.dirname(PACK))
        import pack
        for spec in sorted({*pack.GPU_MODELS, *pack.CPU_MODELS}):
            made = harness.run([os.path.join(self.args.bin, "cortiq-bench"), "--synthetic", spec, "--target", TARGET, "-o", self.scratch.output(".cqa")])
            self.tally.check(f"{spec} can be made", harness.why_not_success(made))
        missing = [name for name in (*pack.FIXTURES, *pack.CUTS) if not os.path.exists(os.path.join(self.args.fixtures, name + ".expect.json"))]
        self.tally.check("the usual fixtures are there", ", ".join(missing))

    def unpack(self, archive):
        folder = self.scratch.path("elsewhere")
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="fully_trusted")
        return os.path.join(folder, "cortiq-package")

    def run(self, package, *flags, timeout=LIMIT + 60):
        """The program inside, from a folder of its own, with nothing in its environment but where the monitor is."""
        folder = self.scratch.path("started")
        os.makedirs(folder, exist_ok=True)
        return folder, subprocess.run([sys.executable, os.path.join(package, "run"), *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout,
                                      cwd=folder, env={"PATH": self.tools})

    def check(self, package):
        folder, result = self.run(package, "--limit", str(LIMIT), "--prefill", "16", "--decode", "4", "--repeat", "2", "--threads", "1", "--curve-seconds", "1", "--sample-ms", "50",
                                  "--only", "gpu-speed,gpu-curve,gpu-correct,cpu-correct,cpu-speed,gpu-peers,cpu-peers")
        self.tally.check("run", harness.why_not_success(result) or None)
        with open(os.path.join(folder, "results", "results.json")) as file:
            rows = json.load(file)["rows"]
        with open(os.path.join(folder, "results", "results.txt")) as file:
            self.tally.check("the table is what was printed", None if file.read() == result.stdout else "another one")
        wrong = [f"{row['part']} {row['what']}: {row['outcome']} {row['detail']}" for row in rows if row["outcome"] not in ("ok", "differs") and (self.has_gpu or not row["part"].startswith("gpu"))]
        self.tally.check("every row has an outcome", "; ".join(wrong))
        self.rows_of("cpu-correct", rows, [f"{FIXTURE} {arm} {TARGET}" for arm in ("exact", "fast same", "fast half")]
                     + [f"{FIXTURE} {arm} {TARGET}: prompt in pieces" for arm in ("fast same", "fast half")])
        self.rows_of("cpu-speed", rows, [f"{MODEL} {TARGET} 1 threads"])
        self.rows_of("cpu-peers", rows, [MODEL])
        if not self.has_gpu:
            self.tally.skip("there is no device of Vulkan here: parts for GPUs are not run")
            return
        self.rows_of("gpu-correct", rows, [f"{FIXTURE} {arm}" for arm in ("exact", "fast same", "fast half")]
                     + [f"{FIXTURE} {arm}: prompt in pieces" for arm in ("fast same", "fast half")])
        self.rows_of("gpu-speed", rows, [f"{MODEL} {which}" for which in ("first", "second", "third", "together")])
        self.rows_of("gpu-peers", rows, [MODEL])
        self.check_speeds([row for row in rows if row["part"] == "gpu-speed" and "measured" in row], result.stdout)
        self.rows_of("gpu-curve", rows, [f"{MODEL} {which}, 1 s" for which in ("first", "second", "made twice", "profile")])
        profiles = [row["measured"] for row in rows if row["what"] == f"{MODEL} profile, 1 s"]
        self.tally.check("the profile has pipelines", None if [bool(one["pipelines"]) for one in profiles] == [True] else str(profiles))
        for row in rows:
            if curve := row.get("curve"):
                right = len(curve) >= 3 and all(point["tokens_per_second"] > 0 for point in curve)
                self.tally.check(f"{row['what']}: a second of warm-up and one that counts", None if right else str(curve))

    def rows_of(self, part, rows, wanted):
        found = [row["what"] for row in rows if row["part"] == part]
        self.tally.check(f"{part}: its rows", None if sorted(found) == sorted(wanted) else f"{found}, not {wanted}")

    def check_speeds(self, rows, table):
        """Each run by itself, and clocks of each phase by the monitor of before."""
        for row in rows:
            for phase in ("prefill", "decode"):
                measured, clocks = row["measured"][phase], row["measured"]["clocks"][phase]
                runs = measured["runs_tokens_per_second"]
                right = len(runs) == 2 and min(runs) > 0 and max(runs) == measured["tokens_per_second"] and measured["ended"] - measured["began"] >= 1
                self.tally.check(f"{row['what']}: runs of {phase}", None if right and measured["warm_up_tokens_per_second"] else str(measured))
                right = clocks and clocks["sm_mhz"] == {"min": 345, "median": 345} and clocks["reasons"] == {"software power cap": clocks["samples"]}
                self.tally.check(f"{row['what']}: clocks of {phase}", None if right else str(clocks))
        self.tally.check("the table says clocks and reasons", None if "SM 345/345 MHz" in table and "software power cap" in table else table)

    def check_bounds(self, package):
        """Without time nothing is run, and that is said; what is not known is refused."""
        folder, result = self.run(package, "--limit", "0.001", "--threads", "1", "--only", "cpu-correct,cpu-speed", "--out", "none")
        with open(os.path.join(folder, "none", "results.json")) as file:
            rows = json.load(file)["rows"]
        self.tally.check("what does not fit is not run", harness.why_not_success(result) or (None if len(rows) == 6 and {row["outcome"] for row in rows} == {"not run"} else str(rows)))
        for flags, word in ((("--only", "gpu-corect"), "'gpu-corect'"), (("--threads", "x"), "'x'"), (("--limit", "0"), "--limit"), (("--device", "all"), "'all'")):
            _, result = self.run(package, *flags)
            self.tally.check(f"run {' '.join(flags)} is refused", harness.why_not_refusal(result) or (None if word in result.stderr else result.stderr))
        _, result = self.run(package, "--list")
        self.tally.check("--list", harness.why_not_success(result) or (None if MODEL in result.stdout and "Other, llama" in result.stdout else result.stdout))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-run")
    harness.need_fixtures(args, FIXTURE + ".expect.json")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        packing = Packing(tally, args, scratch)
        packing.refusals()
        packing.usual_models()
        peer = program(scratch.path("peer/llama-bench"), LLAMA_BENCH)
        archive, result = packing.pack("--fixture", FIXTURE, "--cut", FIXTURE, "--gpu-model", MODEL, "--cpu-model", MODEL, "--cpu-target", TARGET, "--no-unit-tests",
                                       "--peer", f"Other={peer}", "--peer", f"llama={peer}")
        why_not = harness.why_not_success(result)
        tally.check("pack.py", why_not)
        if not why_not:
            package = packing.unpack(archive)
            packing.check(package)
            packing.check_bounds(package)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
