#!/usr/bin/env python3
"""What happens when a GPU fails: lost at a submission, at a wait or at the end, without an answer, out of memory, a driver that refuses a
shader, matrices that it cannot bind; several devices; memory and files that stay behind. Failures are asked for through CORTIQ_GPU_FAULTS (runtime/vulkan/faults.h) and happen on the software
device of Mesa, with the validation layer listening. Tokens have to be the recorded ones wherever there are any."""
import concurrent.futures
import http.client
import json
import os
import re
import signal
import subprocess
import sys

import harness
import vulkan_test
from serve_test import Server

MODEL, NUMERICS = "llama-q8", "fast"
SCALED = "qwen2-q8_2f"  # its column scales are applied on the one side or on the other

# Faults, and what --stats or the note says of them; the run goes on, on the CPU or beside the fault.
GOES_ON = [
    ("submit=1", "the CPU went on"),
    ("submit=3", "the CPU went on"),
    ("wait=2", "the CPU went on"),
    ("hang=2", "given up; the CPU went on"),
    ("allocate=1", "the CPU runs the model"),
    ("allocate=2", "the CPU runs the model"),
    ("allocate=5", "the CPU "),
    ("allocate=7,pipeline=top_logits", "the CPU went on"),  # in the middle: room for a whole row of logits
    ("teardown=1", "in between: 0"),
]
# In a prompt that takes several steps, and behind it.
IN_PIECES = [("submit=2", "the CPU went on"), ("wait=3", "the CPU went on"), ("hang=2", "given up; the CPU went on"), ("submit=9", "the CPU went on")]
PIECE = 4  # tokens of a step
# Alone, without --fallback: what is refused runs elsewhere.
REFUSED = [
    ("pipeline=matmul_i8", "'matmul_i8_q8_row' was refused"),
    ("pipeline=matmul_tile", "'matmul_tile_i8_q8_row' was refused"),
    ("pipeline=attention", "'attention' was refused"),
    ("pipeline=rope_kv", "'rope_kv' was refused"),
    ("pipeline=glu", "'glu' was refused"),
    ("pipeline=argmax", "GPU: "),
    ("pipeline=rms_norm,features=none", "'rms_norm' was refused"),
    ("pipeline= 49=1", "was refused"),  # all that one token has of its own
    ("matrix=110000", "binds at most 110000"),
    ("invocations=128", "runs at most 128"),
    ("shared=1000", "bytes of shared memory"),
]
LOST = "the device was lost; with --fallback=cpu the CPU goes on"


def run(args, artifact, spec, faults, flags, environment):
    return vulkan_test.generate(args, artifact, spec, ["--device", "0", *flags], {**environment, "CORTIQ_GPU_FAULTS": faults})


def check_run(tally, args, artifact, spec, faults, flags, says, environment):
    label = f"{os.path.basename(artifact)}: {faults} {' '.join(flags)}"
    count, result = run(args, artifact, spec, faults, flags, environment)
    vulkan_test.check_tokens(tally, label, spec, count, result)
    tally.check(f"{label}: is told", says not in result.stderr and f"{says!r} is not in: {result.stderr}")
    heard = [line for line in (result.stdout + result.stderr).splitlines() if "VUID" in line or "Validation" in line]
    tally.check(f"{label}: validation layer", heard and heard[0])


def check_model(tally, args, folder, environment):
    spec = vulkan_test.expectation(args, MODEL)
    artifact = vulkan_test.compile_model(tally, args, MODEL, NUMERICS, folder)
    if not artifact:
        return
    for faults, says in GOES_ON:
        check_run(tally, args, artifact, spec, faults, ["--fallback", "cpu"], says, environment)
    for faults, says in REFUSED:
        check_run(tally, args, artifact, spec, faults, [], says, environment)
    check_split(tally, args, artifact, spec, environment)
    check_units(tally, args, artifact, spec, environment)
    quiet = {k: v for k, v in environment.items() if k != "VK_INSTANCE_LAYERS"}
    check_cycles(tally, args, artifact, quiet)
    check_kept(tally, args, artifact, spec, folder, quiet)
    check_library(tally, args, artifact, spec, environment)
    # Without a fallback: one sentence.
    _, result = run(args, artifact, spec, "submit=2", [], environment)
    lines = result.stderr.strip().splitlines()
    tally.check("lost without a fallback", (result.returncode != 2 or len(lines) != 1 or LOST not in lines[0]) and result.stderr)
    # Prompts that are to run on matrices of f16 run in 8 bits where there are none.
    artifact = vulkan_test.compile_model(tally, args, MODEL, NUMERICS, folder, "--prompt-numerics=half")
    if artifact:
        check_run(tally, args, artifact, spec, "half=0", [], "has no products of matrices of f16", environment)
        check_run(tally, args, artifact, spec, "half=1", [], "lacks capability", environment)
    artifact = vulkan_test.compile_model(tally, args, MODEL, NUMERICS, folder, "--max-batch", str(PIECE))
    if artifact:
        tally.check("a prompt of several steps", len(spec["prompt_ids"]) <= PIECE and f"{len(spec['prompt_ids'])} tokens")
        for faults, says in IN_PIECES:
            check_run(tally, args, artifact, spec, faults, ["--fallback", "cpu"], says, environment)
    # Both sides reckon in f32 here: sums in 8 bits differ enough for texts of a model of random weights to part.
    artifact = vulkan_test.compile_model(tally, args, MODEL, "exact", folder)
    if artifact:
        check_kv(tally, args, artifact, spec, environment)
        check_serve(tally, args, artifact, environment)
        check_threads(tally, args, artifact)
        check_drain(tally, args, artifact)
    scaled = vulkan_test.expectation(args, SCALED)
    artifact = vulkan_test.compile_model(tally, args, SCALED, NUMERICS, folder)
    if artifact:
        check_run(tally, args, artifact, scaled, "pipeline=matmul", [], "was refused", environment)
        check_run(tally, args, artifact, scaled, "matrix=30000", [], "binds at most 30000", environment)


def check_library(tally, args, artifact, spec, environment):
    """A program that embeds the library: the CPU goes on where it was allowed to, else there is a sentence."""
    path = os.path.join(args.bin, "..", "lib", "libcortiq.so")
    if not os.path.exists(path):
        tally.skip("libcortiq.so is not built")
        return
    wanted = spec["greedy_ids"][:8]
    for faults, fallback in (("", 0), ("submit=1", 1), ("submit=4", 1), ("hang=3", 1), ("allocate=1", 1), ("allocate=5", 1), ("submit=4", 0), ("allocate=1", 0)):
        label = f"the library, {faults or 'no fault'}, {'with' if fallback else 'without'} a fallback"
        result = harness.run([sys.executable, "-B", os.path.join(os.path.dirname(os.path.abspath(__file__)), "library_steps.py"), path, artifact, str(fallback),
                              str(len(wanted)), ",".join(map(str, spec["prompt_ids"]))], env={**os.environ, **environment, "CORTIQ_GPU_FAULTS": faults})
        if fallback or not faults:
            tally.check(label, result.stdout.strip() != json.dumps(wanted) and f"{result.stdout}{result.stderr}, not {wanted}")
        else:
            tally.check(label, (result.returncode != 1 or len(result.stderr.strip().splitlines()) != 1) and f"{result.returncode}: {result.stdout}{result.stderr}")


def ask(server, number):
    return server.call("POST", "/v1/completions", {"prompt": f"Client {number} wrote: ", "max_tokens": 12, "temperature": 0})


def served(args, artifact, faults, flags, environment):
    """The answers to three clients at once, and to one behind them."""
    os.environ.update(environment, CORTIQ_GPU_FAULTS=faults)
    try:
        with Server(args, artifact, "--device", "0", "--sessions", "3", *flags) as server:
            with concurrent.futures.ThreadPoolExecutor(3) as pool:
                answers = list(pool.map(lambda n: ask(server, n), range(3)))
            answers.append(ask(server, 0))
            health = server.call("GET", "/healthz")[0]
            metrics = server.call("GET", "/metrics")[2].decode()
            server.process.send_signal(signal.SIGTERM)
            return answers, health, "\ncortiq_gpu_lost 1" in metrics, server.process.wait(timeout=60)
    finally:
        for name in (*environment, "CORTIQ_GPU_FAULTS"):
            os.environ.pop(name, None)


def text_of(answer):
    return answer[2]["choices"][0]["text"] if answer[0] == 200 else None


def check_serve(tally, args, artifact, environment):
    quiet = {k: v for k, v in environment.items() if k != "VK_INSTANCE_LAYERS"}
    good, health, lost, code = served(args, artifact, "", [], quiet)
    tally.check("served", (health, lost, code) != (200, False, 0) and f"health {health}, lost {lost}, status {code}")
    for faults in ("submit=5", "wait=9", "hang=9"):
        got, health, lost, code = served(args, artifact, faults, ["--fallback", "cpu"], quiet)
        label = f"served, {faults}, with a fallback"
        tally.check(f"{label}: the same texts", [text_of(a) for a in got] != [text_of(a) for a in good] and f"{got} and {good}")
        tally.check(f"{label}: health", (health, lost, code) != (200, True, 0) and f"health {health}, lost {lost}, status {code}")
    got, health, lost, code = served(args, artifact, "allocate=7", ["--fallback", "cpu"], quiet)  # of the second session
    label = "served, no memory for sessions, with a fallback"
    tally.check(f"{label}: the same texts", [text_of(a) for a in got] != [text_of(a) for a in good] and f"{got} and {good}")
    tally.check(f"{label}: health", (health, lost, code) != (200, False, 0) and f"health {health}, lost {lost}, status {code}")
    got, health, lost, code = served(args, artifact, "submit=5", [], quiet)
    failed = [a for a in got if a[0] != 200]
    tally.check("served, lost, without a fallback: a sentence",
                (not failed or any(LOST not in json.dumps(a[2]) for a in failed) or got[-1][0] == 200) and f"{got}")
    tally.check("served, lost, without a fallback: health", (health, lost, code) != (503, True, 0) and f"health {health}, lost {lost}")


def check_threads(tally, args, artifact):
    """Sessions on a device run one after the other, and share the CPU's threads."""
    counts = []
    for sessions in ("1", "6"):
        with Server(args, artifact, "--device", "0", "--sessions", sessions, "--threads", "5") as server:
            code = ask(server, 0)[0]
            counts.append((code, len(os.listdir(f"/proc/{server.process.pid}/task"))))
    tally.check("threads of one session and of six", (counts[0] != counts[1] or counts[0][0] != 200) and f"{counts}")


def check_drain(tally, args, artifact):
    """A stream that the end of the server cuts says so. A device in software is slow enough for a stream to be cut for certain."""
    with Server(args, artifact, "--device", "0", "--drain", "0", "--sessions", "2") as server:
        connection = server.connect()
        connection.request("POST", "/v1/completions", json.dumps({"prompt": "Once", "max_tokens": 400, "ignore_eos": True, "stream": True}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        first = answer.readline()
        server.process.send_signal(signal.SIGTERM)
        try:
            rest = answer.read().decode()
        except http.client.IncompleteRead as cut:
            rest = cut.partial.decode()
        tally.check("a stream that the server's end cuts", (not first.startswith(b"data:") or '"error"' not in rest) and f"{first} … {rest[-300:]}")
        tally.check("a server that ends", server.process.wait(timeout=60) and f"status {server.process.returncode}")


def check_split(tally, args, artifact, spec, environment):
    """The software device opened several times stands for several."""
    for devices, faults in (("0,0", ""), ("0,0,0", ""), ("0,0", "free=1000000"), ("0,0", "pipeline=attention")):
        label = f"layers on --device {devices} {faults}"
        count, result = vulkan_test.generate(args, artifact, spec, ["--device", devices], {**environment, "CORTIQ_GPU_FAULTS": faults})
        vulkan_test.check_tokens(tally, label, spec, count, result)
        parts = [line for line in result.stderr.splitlines() if line.startswith("GPU ") and " steps " in line]
        tally.check(f"{label}: is told", len(parts) != devices.count(",") + 1 and result.stderr)
        heard = [line for line in (result.stdout + result.stderr).splitlines() if "VUID" in line]
        tally.check(f"{label}: validation layer", heard and heard[0])
    count, result = vulkan_test.generate(args, artifact, spec, ["--device", "0,0", "--fallback", "cpu"],
                                         {**environment, "CORTIQ_GPU_FAULTS": "submit=4"})
    vulkan_test.check_tokens(tally, "one of several is lost", spec, count, result)


def check_kv(tally, args, artifact, spec, environment):
    """Caches of every type give the tokens that they give on the CPU, with one token's steps and without them, and on two devices."""
    for kind in ("f32", "f16", "q8"):
        count, result = vulkan_test.generate(args, artifact, spec, ["--device", "none", "--kv", kind], environment)
        wanted = {"greedy_ids": json.loads(result.stdout)["tokens"]} if result.returncode == 0 else spec
        for devices, faults in (("0", ""), ("0", "pipeline= 38=1"), ("0,0", "")):
            label = f"--kv {kind} --device {devices} {faults}"
            _, result = vulkan_test.generate(args, artifact, spec, ["--device", devices, "--kv", kind], {**environment, "CORTIQ_GPU_FAULTS": faults})
            vulkan_test.check_tokens(tally, label, wanted, count, result)
            tally.check(f"{label}: all on the device", "in between: 0" not in result.stderr and result.stderr)
            heard = [line for line in (result.stdout + result.stderr).splitlines() if "VUID" in line]
            tally.check(f"{label}: validation layer", heard and heard[0])


def dispatches(args, artifact, spec, devices, faults, environment):
    _, result = vulkan_test.generate(args, artifact, spec, ["--device", devices], {**environment, "CORTIQ_GPU_FAULTS": faults})
    found = re.search(r"(\d+) dispatches", result.stderr)
    return int(found[1]) if found and "in between: 0" in result.stderr else 0


def check_units(tally, args, artifact, spec, environment):
    """What one token has of its own is given up piece by piece, and several devices have it too."""
    whole, heads, norms, none = (dispatches(args, artifact, spec, "0", faults, environment)
                                 for faults in ("", "pipeline= 38=1", "pipeline= 35=1", "pipeline= 49=1"))
    tally.check("a refused shader of one token costs its own unit",
                not (0 < whole < heads < none and whole < norms < none) and f"{whole}, {heads}, {norms}, {none} dispatches")
    split = dispatches(args, artifact, spec, "0,0", "", environment)
    tally.check("several devices have the steps of one token", split != whole and f"{split} dispatches, {whole} on one device")


def check_cycles(tally, args, artifact, environment):
    """A model that is loaded, used and unloaded again and again takes no more memory than once."""
    peaks = []
    for cycles in (10, 100):
        result = harness.run([os.path.join(args.bin, "cortiq-bench"), *[artifact] * cycles, "--device", "0", "--prefill", "3", "--decode", "1",
                              "--repeat", "1", "--no-machine", "--json"], timeout=600, env={**os.environ, **environment})
        if result.returncode != 0:  # None: out of time, which only a machine with other work takes
            tally.check(f"{cycles} loads", harness.first_line(result))
            return
        models = json.loads(result.stdout)["models"]
        taken, left = models[0]["device_memory"], [model["device_memory_left"] for model in models]
        tally.check(f"{cycles} loads leave nothing on the device",
                    (taken["allocations"] == 0 or taken["bytes"] == 0 or any(l["allocations"] or l["bytes"] for l in left))
                    and f"{taken} taken, {left[-1]} left")
        peaks.append(models[-1]["peak_mb"])
    tally.check("100 loads take the memory of 10", peaks[1] > 1.1 * peaks[0] + 8 and f"{peaks[1]} and {peaks[0]} MB")


def check_kept(tally, args, artifact, spec, folder, environment):
    """What drivers made of shaders: whole files only, whatever ends the process; damaged ones are made again."""
    kept = os.path.join(folder, "kept")
    environment = {**environment, "XDG_CACHE_HOME": kept}

    def files():
        place = os.path.join(kept, "cortiq")
        return [os.path.join(place, name) for name in os.listdir(place)] if os.path.isdir(place) else []

    for seconds in (0.05, 0.2, 0.4, 0.6, 0.9):
        command = [os.path.join(args.bin, "cortiq-run"), artifact, "--device", "0", "--tokens", "5,6", "-n", "40", "--ignore-eos"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **environment})
        try:
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    count, result = vulkan_test.generate(args, artifact, spec, ["--device", "0"], environment)
    vulkan_test.check_tokens(tally, "after processes that were killed", spec, count, result)
    whole = [name for name in files() if name.endswith(".bin")]
    for damage in (b"", b"nothing", None):
        for name in whole:
            with open(name, "rb") as f:
                data = bytearray(f.read())
            if damage is None and len(data) > 100:
                data[len(data) // 2] ^= 1
            with open(name, "wb") as f:
                f.write(bytes(data) if damage is None else damage)
        count, result = vulkan_test.generate(args, artifact, spec, ["--device", "0"], environment)
        vulkan_test.check_tokens(tally, f"kept shaders that are damaged ({damage})", spec, count, result)


if __name__ == "__main__":
    sys.exit(vulkan_test.run_layered(__doc__, check_model))
