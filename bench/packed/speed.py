"""Speeds: of models on a GPU process by process with its clocks beside, of models on the CPU thread count by thread count, of peers in turns."""
import json
import os
import shutil
import statistics
import sys
import time

from clocks import Clocks, sentence
from correct import NOT_HERE
from parts import Part, Step

PROCESSES = ("first", "second", "third")
SLOW = 2.0  # a figure that many times below its neighbours is said
SLICE = 0.5  # seconds of a curve's points
PEER_NAMES = {"llama": "--llama-bench", "ik": "--ik-bench"}  # on the CPU; every other name is a back end for GPUs


def bench(machine, flags, limit, cache, **environment):
    """(JSON of one process of cortiq-bench or None, why not, the process)."""
    finished = machine.call([machine.program("cortiq-bench"), *flags, "--json"], limit, cache=cache, **environment)
    why_not = finished.why_not()
    return (None if why_not else json.loads(finished.out)), why_not, finished


def spread(phase):
    runs = phase["runs_tokens_per_second"]
    return f"{statistics.median(runs):,.0f} ({min(runs):,.0f}–{max(runs):,.0f})"


class GpuPart(Part):
    on_gpu = True

    def flags(self, model, *more):
        args = self.context.args
        return [self.context.path(model["artifact"]), "--fill", "1", "--device", args.device, "--no-machine", "--prefill", str(args.prefill), *more]

    def measured(self, model, limit, cache, *more, **environment):
        """One process: what it says, with the clocks of its phases."""
        args = self.context.args
        with Clocks(self.machine, args.device.split(",")[0], args.sample_ms) as clocks:
            found, why_not, finished = bench(self.machine, self.flags(model, *more), limit, cache, **environment)
        if why_not:
            return None, why_not, clocks
        found["process_seconds"] = finished.seconds
        found["clocks"] = {"whole": clocks.summary(), "why_none": clocks.why_none,
                           **{phase: clocks.summary(found[phase]["began"], found[phase]["ended"]) for phase in ("prefill", "decode")}}
        found["clock_samples"] = clocks.samples
        return found, None, clocks


class GpuSpeed(GpuPart):
    """Each model in three processes that share a cache of pipelines which is empty at first: what is made once stands apart."""

    def steps(self):
        for model in self.context.manifest["gpu_models"]:
            cache, speeds = self.context.cache(f"{self.name}-{model['name']}"), {}
            shutil.rmtree(cache, ignore_errors=True)
            for which in PROCESSES:
                yield Step(f"{model['name']} {which}", 120, lambda limit, m=model, w=which, c=cache, s=speeds: self.process(m, w, c, s, limit))
            if len(speeds) > 1:
                yield Step(f"{model['name']} together", 1e9, lambda limit, s=speeds: self.together(s))

    def process(self, model, which, cache, speeds, limit):
        args = self.context.args
        found, why_not, _ = self.measured(model, limit, cache, "--decode", str(args.decode), "--repeat", str(args.repeat))
        if why_not:
            return "failed", why_not, {}
        speeds[which] = {phase: statistics.median(found[phase]["runs_tokens_per_second"]) for phase in ("prefill", "decode")}
        detail = (f"prefill {spread(found['prefill'])}, decode {spread(found['decode'])}, loaded in {found['load_ms'] / 1e3:.1f} s; "
                  f"prefill {sentence(found['clocks']['prefill'])}; decode {sentence(found['clocks']['decode'])}")
        return "ok", detail, {"measured": found}

    @staticmethod
    def together(speeds):
        ratios = {phase: max(s[phase] for s in speeds.values()) / max(min(s[phase] for s in speeds.values()), 1e-9) for phase in ("prefill", "decode")}
        slow = [f"{which} {phase} is {max(s[phase] for s in speeds.values()) / speed[phase]:.1f} times as slow as the fastest process"
                for which, speed in speeds.items() for phase in ("prefill", "decode")
                if max(s[phase] for s in speeds.values()) > SLOW * speed[phase]]
        detail = f"fastest process by slowest: prefill {ratios['prefill']:.2f}, decode {ratios['decode']:.2f}"
        return ("differs" if slow else "ok"), "; ".join([*slow, detail]), {"ratios": ratios}


class GpuCurve(GpuPart):
    """Prefill for seconds in a process that makes its pipelines and in one that finds them: whether a slow one recovers, with clocks over
    the same time. Then in one that makes each twice, the second time from what the driver kept of the first; and a profile, which has what
    the driver says of each pipeline and the time of each step."""

    def steps(self):
        for model in self.context.manifest["gpu_models"]:
            if model["curve"]:
                cache = self.context.cache(f"{self.name}-{model['name']}")
                shutil.rmtree(cache, ignore_errors=True)
                for which in PROCESSES[:2]:
                    yield self.step(model, which, cache)
                for which, flags, environment in (("made twice", (), {"CORTIQ_GPU_FAULTS": "remake=1"}), ("profile", ("--profile",), {})):
                    cache = self.context.cache(f"{self.name}-{model['name']}-{which.replace(' ', '-')}")
                    shutil.rmtree(cache, ignore_errors=True)
                    yield self.step(model, which, cache, *flags, **environment)

    def step(self, model, which, cache, *flags, **environment):
        return Step(f"{model['name']} {which}, {self.context.args.curve_seconds} s", 180,
                    lambda limit: self.curve(model, cache, limit, *flags, **environment))

    def curve(self, model, cache, limit, *flags, **environment):
        seconds = str(self.context.args.curve_seconds)
        found, why_not, clocks = self.measured(model, limit, cache, "--decode", "0", "--repeat", "1", "--seconds", seconds, *flags, **environment)
        if why_not:
            return "failed", why_not, {}
        phase, points, at = found["prefill"], {}, 0.0
        for rate in phase["warm_up_tokens_per_second"] + phase["runs_tokens_per_second"]:
            points.setdefault(int(at / SLICE), []).append(rate)
            at += phase["tokens"] / max(rate, 1e-9)
        curve = []
        for point, rates in points.items():
            began = phase["began"] + point * SLICE
            clock = clocks.summary(began, began + SLICE)
            curve.append({"second": point * SLICE, "tokens_per_second": statistics.median(rates), "runs": len(rates), "clocks": clock})
        shown = " ".join(f"{point['second']:.1f}s:{point['tokens_per_second']:,.0f}" + (f"@{point['clocks']['sm_mhz']['median']:.0f}MHz" if point["clocks"] and "sm_mhz" in point["clocks"] else "")
                         for point in curve)
        rates = [point["tokens_per_second"] for point in curve]
        return ("differs" if max(rates) > SLOW * min(rates) else "ok"), shown, {"curve": curve, "measured": found}


class CpuMachine(Part):
    def steps(self):
        yield Step("ceilings", 120, self.ceilings)

    def ceilings(self, limit):
        found, why_not, _ = bench(self.machine, ["--machine", "--threads", ",".join(map(str, self.context.args.thread_list))], limit, self.context.cache(self.name))
        if why_not:
            return "failed", why_not, {}
        shown = [f"{each['threads']} threads: {each['read']['gbps']:.1f} GB/s" + "".join(f", {peak['unit']} {peak['tops']:.2f}" for peak in each["peaks"])
                 for each in found["threads"]]
        return "ok", "; ".join(shown), {"measured": found}


class CpuSpeed(Part):
    """Every codec with most threads first, then with fewer; the better target before the other."""

    def steps(self):
        for target in self.context.manifest["cpu_targets"]:
            for threads in self.context.args.thread_list:
                for model in self.context.manifest["cpu_models"]:
                    yield Step(f"{model['name']} {target} {threads} threads", 120, lambda limit, m=model, t=target, n=threads: self.process(m, t, n, limit))

    def process(self, model, target, threads, limit):
        args = self.context.args
        flags = [self.context.path(model["artifact"]), "--fill", "1", "--target", target, "--threads", str(threads), "--prefill", str(args.prefill),
                 "--decode", str(args.decode), "--repeat", str(args.repeat if threads == args.thread_list[0] else 1)]
        found, why_not, _ = bench(self.machine, flags, limit, self.context.cache(self.name))
        if why_not:
            return ("not run" if NOT_HERE in why_not else "failed"), why_not, {}
        detail = (f"prefill {spread(found['prefill'])}, decode {spread(found['decode'])}, {found['decode_gbps']:.1f} of {found['read_gbps']:.1f} GB/s "
                  f"({found['decode_gbps'] / max(found['read_gbps'], 1e-9):.2f})")
        return "ok", detail, {"measured": found}


class Peers(Part):
    """bench/peers.py on files of the same shapes, which are made here and taken away again."""

    def __init__(self, name, context, on_gpu):
        super().__init__(name, context)
        self.on_gpu = on_gpu
        self.peers = {peer: path for peer, path in context.manifest["peers"].items() if (peer not in PEER_NAMES) == on_gpu}
        self.models = [model for model in context.manifest["gpu_models" if on_gpu else "cpu_models"] if model["gguf"]]

    def why_not(self):
        return None if self.peers else "no such peer is packed"

    def steps(self):
        for model in self.models:
            yield Step(model["name"], 300, lambda limit, m=model: self.compare(m, limit))

    def compare(self, model, limit):
        args, until = self.context.args, time.monotonic() + limit
        file, out = (os.path.join(self.machine.work, f"peers{end}") for end in (".gguf", ".json"))
        try:
            made = self.machine.call([self.machine.program("cortiq-bench"), "--synthetic", model["spec"], "-o", file], limit)
            if why_not := made.why_not():
                return "failed", f"making the file: {why_not}", {}
            command = [sys.executable, self.context.path("peers.py"), file, "--artifact", self.context.path(model["artifact"]), "--bin", self.context.path("bin"), "--by", "report",
                       "--rounds", "1", "--repeat", str(args.repeat), "--prefill", str(args.prefill), "--decode", str(args.decode), "--json", out,
                       "--threads", "4" if self.on_gpu else str(args.thread_list[0]), *(["--device", args.device] if self.on_gpu else [])]
            for peer, path in self.peers.items():
                command += [PEER_NAMES[peer], self.context.path(path)] if peer in PEER_NAMES else ["--gpu-bench", f"{peer}={self.context.path(path)}"]
            finished = self.machine.call(command, until - time.monotonic(), cache=self.context.cache(f"{self.name}-{model['name']}"))
            if why_not := finished.why_not():
                return "failed", why_not, {}
            with open(out) as written:
                rows = json.load(written)["rows"]
        finally:
            for path in (file, out):
                if os.path.exists(path):
                    os.remove(path)
        shown = [f"{row['engine']} {row['phase']} {row['median']:,.0f}" + (f" ({row['ratio']:.2f})" if row["ratio"] else "") for row in rows]
        return "ok", "; ".join(shown), {"rows": rows}
