#!/usr/bin/env python3
"""cortiq-bench on synthetic models: what it prints is JSON and adds up, its files are what they should be, a model of another machine's
artifact runs with weights made at load, and what it cannot make is refused.
"""
import json
import math
import os
import shutil
import sys
import xml.etree.ElementTree

import harness

PROFILED = ("tiny:q4_0", "tiny-moe:cmf:q4tp")
SPECS = ("tiny:q4_k", "tiny:cmf:q4tp", "tiny:cmf:q8_row,head=q4_tiled", "tiny:vbit", "tiny-moe:q4_k,attention=q8_0", "layers=1,hidden=256,ffn=256,heads=4,kv-heads=2,vocab=300:gguf:MXFP4")
REFUSED = (("3c:q4_0", "'3c'"), ("tiny", "SHAPE:CODEC"), ("tiny:q4_q", "'q4_q'"), ("tiny,layers=0:q4_0", "'0'"), ("tiny,depth=3:q4_0", "'depth'"),
           ("tiny,hidden=100:q4_k", "token_embd"), ("layers=2:q4_0", "vocab"), ("tiny:q4_0,head=q4tp", "q4tp"), ("tiny:q4_0,tail=q8_0", "tail"),
           ("tiny,heads=3,kv-heads=2:q4_0", "3 heads"), ("tiny-moe,used=9:q4_0", "9 experts"))

TRIES = 3  # of a measurement, before what is odd about it counts


def what_is_wrong(phase, profile, threads):
    """A sentence on the first thing in a phase's profile that cannot be, or None."""
    if profile["steps"] < 1 or profile["threads"] != threads:
        return f"{profile['steps']} steps on {profile['threads']} threads"
    parts = sum(profile[name] for name in ("work_us", "waiting_us", "alone_us", "setup_us", "between_steps_us"))
    if not math.isclose(parts, profile["us_a_step"], rel_tol=0.01):
        return f"parts of a step sum to {parts}, a step is {profile['us_a_step']}"
    ops = sum(op["us_a_step"] for op in profile["ops"])
    if not 0 < ops <= 1.01 * profile["us_a_step"]:
        return f"operations sum to {ops}, a step is {profile['us_a_step']}"
    # Weights of a model this small are read from cache, several times as fast as from memory; arithmetic has no such way out.
    if not 0 < profile["of_floor"] < (1.1 if phase == "prefill" else 10):
        return f"{profile['of_floor']} of the floor"
    if not any(op["op"].startswith("gem") and op.get("gbps", 0) > 0 and op.get("tops", 0) > 0 for op in profile["ops"]):
        return "no kernel has GB/s and operations"
    return None

# For each 32 weights one instruction, four times three of which one loads, and two.
# What engines of bench/peers.py print.
STAND_INS = {
    "llama-bench": json.dumps([{"n_prompt": 512, "samples_ts": [100]}, {"n_prompt": 0, "samples_ts": [10]}]),
    "cortiq-bench": json.dumps({"prefill": {"median_tokens_per_second": 150}, "decode": {"median_tokens_per_second": 15}}),
}
STAND_IN = """#include <stddef.h>
void ggml_vec_dot_mxfp4_q8_0(int n, float* s, size_t bs, const void* vx, size_t bx, const void* vy, size_t by, int nrc) {
  __asm__ volatile("0: mov w9, #4\\n 1: ldr q0, [%1]\\n subs w9, w9, #1\\n b.ne 1b\\n subs %w0, %w0, #32\\n b.ne 0b"
                   : "+r"(n) : "r"(vx) : "w9", "v0", "cc", "memory");
}
"""


class Bench:
    def __init__(self, args, scratch, tally):
        self.args, self.scratch, self.tally = args, scratch, tally

    def call(self, *flags):
        return harness.run([os.path.join(self.args.bin, "cortiq-bench"), *flags])

    def json_of(self, label, *flags):
        result = self.call(*flags, "--json")
        why_not = harness.why_not_success(result)
        self.tally.check(label, why_not)
        return None if why_not else json.loads(result.stdout)

    def check_machine(self):
        found = self.json_of("--machine", "--machine", "--threads", "2,1")
        if not found:
            return
        self.tally.check("--machine: numbers of threads", None if [c["threads"] for c in found["threads"]] == [2, 1] else str(found))
        for ceilings in found["threads"]:
            rates = [ceilings["read"]["gbps"], ceilings["read"]["median_gbps"]] + [peak["tops"] for peak in ceilings["peaks"]]
            self.tally.check(f"--machine: {ceilings['threads']} threads", None if rates and all(rate > 0 for rate in rates) else str(ceilings))

    def measured(self, faults, label, *flags):
        """A measurement's JSON and faults(it), a sentence or None a name. Speeds stand against a peak that was measured before them: other
        work on the machine then makes them look too good, so they may be measured again; what is computed wrongly is wrong each time.
        """
        for _ in range(TRIES):
            found = self.json_of(label, *flags)
            wrong = faults(found) if found else {}
            if not any(wrong.values()):
                break
        return found, wrong

    def check_profile(self, spec):
        def faults(found):
            return {f"{phase} on {threads} threads": what_is_wrong(phase, run["profile"][phase], threads)
                    for run, threads in zip(found["runs"], (2, 1)) for phase in ("prefill", "decode")}

        flags = ("--synthetic", spec, "--prefill", "64", "--decode", "6", "--repeat", "2", "--profile", "--threads", "2,1")
        _, wrong = self.measured(faults, spec, *flags)
        for name, why in wrong.items():
            self.tally.check(f"{spec}: {name}", why)
        self.tally.note(spec)

    def check_spec(self, spec):
        found = self.json_of(spec, "--synthetic", spec, "--prefill", "20", "--decode", "6", "--repeat", "1", "--threads", "1", "--no-machine")
        if found:
            speeds = [found[phase]["tokens_per_second"] for phase in ("prefill", "decode")] + [found["decode_gbps"]]
            self.tally.check(f"{spec}: speeds", None if all(speed > 0 for speed in speeds) else str(found))
            slower = [phase for phase in ("prefill", "decode") if not 0 < found[phase]["median_tokens_per_second"] <= found[phase]["tokens_per_second"]]
            self.tally.check(f"{spec}: the median run is no faster than the fastest", None if not slower else str(found))

    def check_runs(self):
        """Every run's speed, with --seconds more of them; a phase without tokens has one."""
        found = self.json_of("--seconds", "--synthetic", "tiny:q4_0", "--prefill", "64", "--decode", "0", "--repeat", "2", "--seconds", "1", "--threads", "1", "--no-machine")
        if found:
            prefill, decode = found["prefill"], found["decode"]
            runs = prefill["runs_tokens_per_second"]
            right = len(runs) > 2 and max(runs) == prefill["tokens_per_second"] and 1 <= sum(64 / rate for rate in runs) <= prefill["ended"] - prefill["began"]
            self.tally.check("--seconds: runs of prefill", None if right else f"{len(runs)} runs of {prefill}"[:300])
            self.tally.check("--seconds: no tokens, no more runs", None if len(decode["runs_tokens_per_second"]) == 2 else str(decode)[:300])

    def check_kernel(self):
        def faults(found):
            return {count: what_is_wrong("prefill" if count != "1" else "decode", profile, 1)
                    for count, profile in found["runs"][0]["tokens"].items()}

        found, wrong = self.measured(faults, "--gemv", "--gemv", "gguf:Q4_K", "--shape", "512x1024", "--threads", "1")
        if found:
            self.tally.check("--gemv: speeds", next(filter(None, wrong.values()), None if len(wrong) == 2 else str(found)))
        for flags in (("--shape", "512"), ("--shape", "0x256"), ("--shape", "512x100"), ("--shape", "999999999x999999999"), (), ("--shape", "2x256", "-o", "y")):
            self.tally.check(f"--gemv {flags} is refused", harness.why_not_refusal(self.call("--gemv", "gguf:Q4_K", *flags)))

    def check_static(self):
        found = self.json_of("--static", "--static", "gguf:Q8_0", "--shape", "64x1024", "--target", "dotprod,x86-64-v3")
        kernels = {kernel["name"]: kernel for kernel in found["kernels"]} if found else {}
        for name, bytes_per_weight in (("gemv_f32_q8a_q8_0_r16_k1024_1x16_dotprod", 34 / 32), ("gemv_f32_q8a_q8_0_r16_k1024_1x16_v3", 34 / 32)):
            kernel = kernels.get(name, {})
            right = kernel and 1 < kernel["instructions"] <= kernel["all_instructions"] < 20 and 0 < kernel["loads"] < kernel["instructions"] \
                and kernel["bytes_per_weight"] == bytes_per_weight
            self.tally.check(f"--static: {name}", None if right else str(kernel or list(kernels)))
        if "why_no_cycles" in (found or {}):
            self.tally.skip(found["why_no_cycles"])
        else:
            wrong = [name for name, kernel in kernels.items() if not kernel["cycles"] or min(kernel["cycles"].values()) <= 0]
            self.tally.check("--static: cycles", ", ".join(wrong))
        model = self.scratch.output(".gguf")
        self.call("--synthetic", "tiny:q4_0", "-o", model)
        listed = self.call("--static", model, "--target", "armv8", "--cpu", "cortex-a72")
        self.tally.check("--static MODEL", harness.why_not_success(listed) or (None if "_q4_0_r16_" in listed.stdout else listed.stdout))
        without = harness.run([os.path.join(self.args.bin, "cortiq-bench"), "--static", "gguf:Q4_0", "--shape", "16x256"], env={"PATH": self.scratch.folder})
        self.tally.check("--static without llvm-mca", harness.why_not_success(without) or (None if "llvm-mca-19" in without.stdout else without.stdout))
        for flags in (("gguf:Q4_0,",), ("gguf:Q9",), ("gguf:Q4_0", "--cpu", "m1"), ("gguf:Q4_0", "--target", "dotprod", "--cpu", "haswell"), ("gguf:Q4_0", "--target", "dotprod,,"), ("gguf:Q4_0", "--prefill", "3"),
                      ("gguf:Q4_0", "--target", "nowhere"), ("gguf:Q4_0", "--shape", "16x3")):
            self.tally.check(f"--static {' '.join(flags)} is refused", harness.why_not_refusal(self.call("--static", *flags)))

    def check_files(self):
        artifact, trace, picture = (self.scratch.output(end) for end in (".cqa", ".json", ".svg"))
        self.tally.check("-o OUT.cqa", harness.why_not_success(self.call("--synthetic", "3b,layers=2:q6_k", "-o", artifact)))
        size = os.path.getsize(artifact)
        self.tally.check("-o OUT.cqa is small", None if size < 1 << 20 else f"{size} bytes")
        self.tally.check("without --fill it is refused", harness.why_not_refusal(self.call(artifact)))
        small = self.scratch.output(".cqa")
        self.call("--synthetic", "tiny:q5_k", "-o", small)
        self.tally.check("with --fill it runs", harness.why_not_success(
            self.call(small, "--fill", "3", "--prefill", "9", "--decode", "3", "--repeat", "1", "--profile", "--trace", trace, "--roofline", picture)))
        model, whole = self.scratch.output(".gguf"), self.scratch.output(".cqa")
        self.call("--synthetic", "tiny:q4_0", "-o", model)
        harness.run([os.path.join(self.args.bin, "cortiq-compile"), model, "-o", whole])
        for flags in ((), ("--sequences", "2")):
            refused = self.call(whole, "--fill", "3", *flags)
            self.tally.check(f"--fill of an artifact with weights {' '.join(flags)}",
                             harness.why_not_refusal(refused) or (None if "leave --fill out" in refused.stderr else refused.stderr))
        with open(trace) as file:
            events = json.load(file)["traceEvents"]
        self.tally.check("--trace", None if sum(event["ph"] == "X" and event["dur"] >= 0 for event in events) > 20 else f"{len(events)} events")
        root = xml.etree.ElementTree.parse(picture).getroot()
        self.tally.check("--roofline", None if root.tag.endswith("svg") and len(root.findall("{*}circle")) > 4 else root.tag)

    def check_models(self):
        for spec, end in (("tiny:q4_0", ".gguf"), ("tiny-moe:cmf:q4tp", ".cmf")):
            model, artifact = self.scratch.output(end), self.scratch.output(".cqa")
            self.tally.check(f"{spec} -o OUT{end}", harness.why_not_success(self.call("--synthetic", spec, "-o", model)))
            self.tally.check(f"{spec}: compile", harness.why_not_success(
                harness.run([os.path.join(self.args.bin, "cortiq-compile"), model, "-o", artifact])))
            result = harness.run([os.path.join(self.args.bin, "cortiq-run"), artifact, "--tokens", "1,2,3", "-n", "4", "--ignore-eos", "--json"])
            why_not = harness.why_not_success(result)
            self.tally.check(f"{spec}: run", why_not or (None if len(json.loads(result.stdout)["tokens"]) == 4 else result.stdout))

    def check_refusals(self):
        for spec, word in REFUSED:
            result = self.call("--synthetic", spec)
            self.tally.check(f"{spec} is refused", harness.why_not_refusal(result) or (None if word in result.stderr else result.stderr))
        for flags in (("--synthetic", "tiny:q4_0", "-o", "x.cmf"), ("--synthetic", "tiny:q4_0", "-o", "x.cqa", "--profile"),
                      ("--machine", "--threads", "2,0"), ("--machine", "--threads", "x"), ("--machine", "--profile"), ("--synthetic", "tiny:q4_0", "--no-machine", "--profile"), ("--bandwidth", "--threads", "2,1"),
                      ("--synthetic", "tiny:q4_0", "--machine"), ("--machine", "--device", "0"), ("--machine", "--bandwidth"), ("--barriers", "--device", "0"),
                      ("--gemv", "gguf:Q4_0", "--shape", "8x256", "--device", "0"), ("--static", "gguf:Q4_0", "--sequences", "2"), ("m.cqa", "--device", "0", "--trace", "t.json"),
                      ("m.cqa", "--device", "0", "--roofline", "r.svg"), ("m.cqa", "--bank-slots", "3"), ("--synthetic", "tiny:q4_0", "-o", "x.cqa", "--device", "0"),
                      ("m.cqa", "--perplexity", "t.txt", "--sequences", "2"), ("m.cqa", "--sequences", "2", "--seconds", "3"), ("none.cqa", "--trace", "no/such/folder/t.json"), ("none.cqa", "--trace", "t", "--roofline", "t")):
            result = self.call(*flags)
            says = "does not go with" if "m.cqa" in flags else "cannot write" if "no/such/folder/t.json" in flags else "same file" if "none.cqa" in flags else ""
            why_not = harness.why_not_refusal(result) or (says not in result.stderr and result.stderr)
            self.tally.check(" ".join(flags) + " is refused", why_not or None)

    def check_peers(self):
        """bench/peers.py without our programs, with an artifact and with a model."""
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "peers.py")
        for flags in ((), ("--artifact", "model.cqa")):
            result = harness.run([sys.executable, script, "model.gguf", "--bin", self.scratch.folder, *flags])
            why_not = harness.why_not_refusal(result) or (None if "cortiq-bench" in result.stderr else result.stderr)
            self.tally.check(f"peers.py {' '.join(flags)} without cortiq-bench is refused", why_not)
        result = harness.run([sys.executable, script, "model.gguf", "--gpu-bench", "llama-bench"])
        self.tally.check("peers.py --gpu-bench without a name is refused", harness.why_not_refusal(result) or (None if "--gpu-bench" in result.stderr else result.stderr))
        self.check_turns(script)
        self.check_gpu(script)

    def stand_ins(self, folder, calls, what):
        """Programs that write down the argument behind `what`, by name, of each call."""
        os.makedirs(folder)
        for name, text in STAND_INS.items():
            path = os.path.join(folder, name)
            with open(path, "w") as file:
                file.write(f"#!{sys.executable}\nimport sys\nwith open({calls!r}, 'a') as log:\n    print({name!r}, sys.argv[sys.argv.index({what[name]!r}) + 1], file=log)\n"
                           f"print({text!r})\n")
            os.chmod(path, 0o755)

    def check_gpu(self, script):
        """Two back ends of one peer beside cortiq on a device: what each is told, and that the better of them is the measure."""
        folder, calls, out = self.scratch.path("gpu-stand-ins"), self.scratch.output(".log"), self.scratch.output(".json")
        self.stand_ins(folder, calls, {"llama-bench": "-ngl", "cortiq-bench": "--device"})
        bench = os.path.join(folder, "llama-bench")
        result = harness.run([sys.executable, script, "m.gguf", "--artifact", self.scratch.output(".cqa"), "--bin", folder, "--gpu-bench", f"Vulkan={bench}", "--gpu-bench",
                              f"CUDA={bench}", "--device", "0", "--threads", "4", "--rounds", "1", "--by", "report", "--json", out])
        why_not = harness.why_not_success(result)
        if not why_not:
            with open(calls) as file:
                seen = file.read().split("\n")[:-1]
            with open(out) as file:
                rows = [(row["phase"], row["engine"], row["ratio"], row["samples"]) for row in json.load(file)["rows"]]
            # cortiq's first call asks whether the artifact has its weights; each engine's process that makes pipelines is not counted.
            turn = ["llama-bench 99", "llama-bench 99", "cortiq-bench 0"]
            if seen != ["cortiq-bench 0", *turn, *turn, "llama-bench 99"]:
                why_not = str(seen)
            elif any(len(samples) != 1 for *_, samples in rows):
                why_not = f"more than the counted process: {rows}"
            elif [row[:3] for row in rows] != [(phase, engine, ratio) for phase in ("prefill", "decode") for engine, ratio in (("Vulkan", 1), ("CUDA", 1), ("cortiq", 1.5), ("drift of Vulkan", 1))]:
                why_not = str(rows)
        self.tally.check("peers.py --device: back ends and cortiq", why_not)

    def check_turns(self, script):
        """Two stand-ins for engines: numbers of threads in one call, engines in turn, drift of each."""
        folder, calls = self.scratch.path("stand-ins"), self.scratch.output(".log")
        self.stand_ins(folder, calls, {"llama-bench": "-t", "cortiq-bench": "--threads"})
        artifact, out = self.scratch.output(".cqa"), self.scratch.output(".json")
        # Asked for an artifact's own weights first, without a number of threads: that call writes nothing down and fails.
        result = harness.run([sys.executable, script, "m.gguf", "--artifact", artifact, "--bin", folder, "--llama-bench", os.path.join(folder, "llama-bench"),
                              "--threads", "8,4,1", "--rounds", "2", "--by", "report", "--json", out])
        why_not = harness.why_not_success(result)
        self.tally.check("peers.py --threads 8,4,1", why_not)
        if why_not:
            return
        with open(calls) as file:
            seen = file.read().split("\n")[:-1]
        turn = [f"{name} {threads}" for threads in (8, 4, 1) for name in ("llama-bench", "cortiq-bench")]
        back = [f"{name} {threads}" for threads in (8, 4, 1) for name in ("cortiq-bench", "llama-bench")]
        self.tally.check("peers.py: engines take turns, the first one comes again", None if seen == turn + back + [f"llama-bench {n}" for n in (8, 4, 1)] else str(seen))
        with open(out) as file:
            rows = [(row["threads"], row["phase"], row["engine"], row["ratio"]) for row in json.load(file)["rows"]]
        want = [(threads, phase, engine, ratio) for threads in (8, 4, 1) for phase in ("prefill", "decode")
                for engine, ratio in (("llama.cpp", 1), ("cortiq", 1.5), ("drift of llama.cpp", 1))]
        self.tally.check("peers.py: a row an engine, and one of drift", None if rows == want else str(rows))
        self.tally.check("peers.py: the table has them", None if result.stdout.count("drift of llama.cpp") == 6 else result.stdout)

    def check_arm_peers(self):
        """bench/arm_peers.py on a stand-in for a checkout: a loop over blocks of 32 weights with another of four rounds inside."""
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "arm_peers.py")
        self.tally.check("arm_peers.py without a checkout is refused", harness.why_not_refusal(harness.run([sys.executable, script])))
        if missing := [tool for tool in ("aarch64-linux-gnu-g++", "llvm-mca-19", "llvm-objdump-19", "qemu-aarch64-static") if not shutil.which(tool)]:
            self.tally.skip(f"arm_peers.py needs {' and '.join(missing)}")
            return
        checkout = self.scratch.path("checkout")
        os.makedirs(os.path.join(checkout, "ggml/src/ggml-cpu/arch/arm"))
        with open(os.path.join(checkout, "ggml/src/ggml-cpu/arch/arm/quants.c"), "w") as file:
            file.write(STAND_IN)
        result = harness.run([sys.executable, script, "--llama", checkout, "--match", "vec_dot_mxfp4", "--json"])
        why_not = harness.why_not_success(result)
        self.tally.check("arm_peers.py", why_not)
        if not why_not:
            rows = json.loads(result.stdout)
            self.tally.check("arm_peers.py: targets", None if [row["target"] for row in rows] == ["armv8", "dotprod"] else str(rows))
            for row in rows:
                self.tally.check("arm_peers.py: instructions", None if row["instructions"] == 1 + 4 * 3 + 2 and row["loads"] == 4 else str(row))
                self.tally.check("arm_peers.py: cycles", None if min(row["cycles"].values()) > 0 else str(row))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-run")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        bench = Bench(args, scratch, tally)
        bench.check_machine()
        for spec in PROFILED:
            bench.check_profile(spec)
        for spec in SPECS:
            bench.check_spec(spec)
        bench.check_runs()
        bench.check_kernel()
        bench.check_static()
        bench.check_files()
        bench.check_models()
        bench.check_refusals()
        bench.check_peers()
        bench.check_arm_peers()
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
