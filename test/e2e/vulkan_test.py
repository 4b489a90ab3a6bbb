#!/usr/bin/env python3
"""Runs fixtures wholly on a device of Vulkan (in CI the software device of Mesa) and holds their greedy tokens against the recorded
ones, with the validation layer listening; then what happens without a device, and with a device that is not there."""
import ctypes
import json
import os
import subprocess
import sys
import tempfile

import harness

# One codec and one shape of layer each; compiling shaders on the software device is what takes time.
MODELS = [("llama-q8", "exact"), ("mistral-q4", "fast"), ("qwen2-q8_2f", "exact")]
LAYER = "VK_LAYER_KHRONOS_validation"


def devices(args):
    result = harness.run([os.path.join(args.bin, "cortiq-run"), "--device", "list"])
    return result.stdout.splitlines() if result.returncode == 0 else []


def need_device(args, fixtures=False):
    """Skips the whole script where there is no device, or no folder of fixtures and it wants `fixtures`."""
    if fixtures and not args.fixtures:
        harness.skip_all("the fixtures folder is not known (CORTIQ_FIXTURES)")
    if not devices(args):
        harness.skip_all("there is no device of Vulkan here; tools/setup installs one in software (mesa-vulkan-drivers)")


def has_layer():
    return any(os.path.exists(f"{folder}/VkLayer_khronos_validation.json")
               for folder in ("/usr/share/vulkan/explicit_layer.d", "/etc/vulkan/explicit_layer.d"))


def run_layered(description, check):
    """The main of a script that runs fixtures under the validation layer, where it is installed, with caches of its own:
    check(tally, args, folder, environment)."""
    args = harness.arguments(description)
    need_device(args, fixtures=True)
    tally = harness.Tally()
    environment = {"VK_INSTANCE_LAYERS": LAYER} if has_layer() else {}
    with tempfile.TemporaryDirectory() as folder:
        environment["MESA_SHADER_CACHE_DIR"] = environment["XDG_CACHE_HOME"] = folder
        check(tally, args, folder, environment)
    return tally.finish()


def generate(args, artifact, spec, flags, environment):
    count = min(12, len(spec["greedy_ids"]))
    command = [os.path.join(args.bin, "cortiq-run"), artifact, "--tokens", ",".join(map(str, spec["prompt_ids"])), "-n", str(count),
               "--temp", "0", "--ignore-eos", "--json", "--stats", *flags]
    return count, subprocess.run(command, capture_output=True, text=True, timeout=600, env={**os.environ, **environment})


def check_tokens(tally, label, spec, count, result):
    if result.returncode:
        tally.check(label, f"exit status {result.returncode}: {harness.first_line(result)}")
        return
    got = json.loads(result.stdout)["tokens"]
    tally.check(label, got != spec["greedy_ids"][:count] and f"tokens {got}, recorded {spec['greedy_ids'][:count]}")


def model_file(args, name):
    """A fixture's model, of whichever kind."""
    cmf = os.path.join(args.fixtures, "models", name + ".cmf")
    return cmf if os.path.exists(cmf) else os.path.join(args.fixtures, "models-gguf", name + ".gguf")


def expectation(args, name):
    with open(os.path.splitext(model_file(args, name))[0] + ".expect.json") as f:
        return json.load(f)


def compile_model(tally, args, name, numerics, folder, *flags):
    """The path of the artifact; none when there is none."""
    artifact = os.path.join(folder, name + ".cqa")
    compiled = harness.run([os.path.join(args.bin, "cortiq-compile"), model_file(args, name), "-o", artifact,
                            "--target", "vulkan", "--numerics", numerics, *flags])
    if compiled.returncode:
        tally.check(name, f"compile: {harness.first_line(compiled)}")
        return None
    return artifact


def check_model(tally, args, name, numerics, folder, environment):
    spec = expectation(args, name)
    artifact = compile_model(tally, args, name, numerics, folder)
    if not artifact:
        return
    count, result = generate(args, artifact, spec, ["--device", "0"], environment)
    check_tokens(tally, name, spec, count, result)
    tally.check(f"{name}: all on the device", "in between: 0" not in result.stderr and f"--stats says: {result.stderr}")
    said = [line for line in (result.stdout + result.stderr).splitlines() if "VUID" in line or "Validation" in line]
    tally.check(f"{name}: validation layer", said and said[0])
    if numerics == "fast":
        check_matrices(tally, args, artifact, spec, folder, environment)
    if name == MODELS[0][0]:
        check_without(tally, args, artifact, spec)
        check_whole_model(tally, args, name, spec, folder, environment)
        check_pipelines(tally, args, artifact, spec, environment)
        check_perplexity(tally, args, artifact, folder, environment)
        check_library(tally, args, artifact, spec)


def check_whole_model(tally, args, name, spec, folder, environment):
    """Who names a GPU for a model has it compiled for it."""
    environment = {**environment, "XDG_CACHE_HOME": os.path.join(folder, "compiled")}
    count, result = generate(args, model_file(args, name), spec, ["--device", "0", "--numerics", "exact"], environment)
    check_tokens(tally, "a model and a device", spec, count, result)
    tally.check("a model and a device: all on it", "in between: 0" not in result.stderr and f"--stats says: {result.stderr}")


def check_perplexity(tally, args, artifact, folder, environment):
    """A text is scored on the device that was named, and its predictions are the CPU's but for the order of sums."""
    text = os.path.join(folder, "text.txt")
    with open(text, "w") as f:
        f.write("In the morning the heron waited.\n" * 4)
    result = harness.run([os.path.join(args.bin, "cortiq-bench"), artifact, "--device", "0", "--perplexity", text, "--context", "16", "--kl", artifact, "--json"],
                         env={**os.environ, **environment})
    label = "perplexity on the device"
    tally.check(label, harness.why_not_success(result) or ("GPU: " not in result.stderr and f"not there: {result.stderr}") or None)
    if not result.returncode:
        mean = json.loads(result.stdout)["kl"]["mean"]
        tally.check(f"{label}: as on the CPU", None if 0 < mean < 1e-6 else f"they diverge by {mean} nats")


def check_pipelines(tally, args, artifact, spec, environment):
    """A profile on the device says what its driver made of the shaders, in JSON one by one and else the most of each count."""
    bench = [os.path.join(args.bin, "cortiq-bench"), artifact, "--device", "0", "--prefill", "3", "--decode", "1", "--repeat", "1", "--threads", "1", "--profile"]
    found, table = (harness.run([*bench, *more], env={**os.environ, **environment}) for more in (["--json"], []))
    label = "pipelines in a profile"
    for result in (found, table):
        tally.check(label, harness.why_not_success(result))
    if found.returncode or table.returncode:
        return
    pipelines = json.loads(found.stdout)["pipelines"]
    odd = [p for p in pipelines if not p["module"] or p["seconds"] < 0 or not all(value >= 0 for value in p["statistics"].values())]
    tally.check(f"{label}: each has a name and a time", None if pipelines and not odd else str(odd or "there are none"))
    counted = {name: max(p["statistics"].get(name, 0) for p in pipelines) for p in pipelines for name in p["statistics"]}
    missing = [name for name, most in counted.items() if f"{name} at most {most:.6g}: " not in table.stdout]
    tally.check(f"{label}: as a table", None if f"{len(pipelines)} pipelines made in " in table.stdout and not missing else f"{missing} in {table.stdout}")
    count, result = generate(args, artifact, spec, ["--device", "0"], {**environment, "CORTIQ_GPU_FAULTS": "remake=1"})
    check_tokens(tally, "pipelines made twice", spec, count, result)
    tally.note(f"the driver counts {', '.join(counted) or 'nothing'}")


class LoadOptions(ctypes.Structure):
    """cortiq_load_options of api/cortiq.h."""
    _fields_ = [("size", ctypes.c_size_t), ("verify_weights", ctypes.c_int32), ("large_pages", ctypes.c_int32), ("numa", ctypes.c_int32), ("memory", ctypes.c_uint64),
                ("require_key", ctypes.c_char_p), ("device", ctypes.c_char_p), ("device_memory", ctypes.c_uint64), ("cpu_fallback", ctypes.c_int32)]


def check_library(tally, args, artifact, spec):
    """A program that embeds the library has the device too."""
    path = os.path.join(args.bin, "..", "lib", "libcortiq.so")
    if not os.path.exists(path):
        tally.skip("libcortiq.so is not built")
        return
    library = ctypes.CDLL(path)
    library.cortiq_last_error.restype = ctypes.c_char_p
    model, session, found = ctypes.c_void_p(), ctypes.c_void_p(), []
    options = LoadOptions(size=ctypes.sizeof(LoadOptions), device=b"0")
    ids = (ctypes.c_uint32 * len(spec["prompt_ids"]))(*spec["prompt_ids"])

    @ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t)
    def take(_user, token, _text, _length):
        found.append(token)
        return len(found) == 4  # anything but 0 ends it

    failed = (library.cortiq_model_load(artifact.encode(), ctypes.byref(options), ctypes.byref(model)) or
              library.cortiq_session_create(model, None, ctypes.byref(session)) or
              library.cortiq_session_generate(session, ids, ctypes.c_size_t(len(ids)), None, take, None, None))
    tally.check("the library on the device", failed and library.cortiq_last_error().decode())
    tally.check("the library on the device: tokens come", len(found) != 4 and f"{found}")
    saved = library.cortiq_session_save(session, os.devnull.encode())
    says = library.cortiq_last_error().decode()
    tally.check("the library on the device: a session is not saved", (not saved or "a session on a GPU" not in says) and says)
    library.cortiq_session_free(session)
    library.cortiq_model_free(model)


def check_matrices(tally, args, artifact, spec, folder, environment):
    """Prompts on cooperative matrices leave the bits of those on tiles of dot products, where the device has such matrices."""
    rows = {}
    prompt = (spec["prompt_ids"] * 8)[:70]
    for faults in ("wide=0", "wide=1"):
        logits = os.path.join(folder, "logits.f32")
        result = subprocess.run([os.path.join(args.bin, "cortiq-run"), artifact, "--device", "0", "--tokens", ",".join(map(str, prompt)),
                                 "-n", "1", "--temp", "0", "--json", "--stats", "--logits", logits], capture_output=True, text=True,
                                timeout=600, env={**os.environ, **environment, "CORTIQ_GPU_FAULTS": faults})
        if result.returncode:
            tally.check("cooperative matrices", f"{faults}: exit status {result.returncode}: {harness.first_line(result)}")
            return
        with open(logits, "rb") as f:
            rows[faults] = f.read()
    if "on cooperative matrices" not in result.stderr:
        tally.skip("the device has no cooperative matrices of bytes: products on them are not held against others")
        return
    tally.check("cooperative matrices give the bits of tiles", rows["wide=0"] != rows["wide=1"] and "logits differ")


def check_without(tally, args, artifact, spec):
    count, result = generate(args, artifact, spec, ["--device", "none"], {})
    check_tokens(tally, "the same artifact on the CPU", spec, count, result)
    _, result = generate(args, artifact, spec, ["--device", "77"], {})
    tally.check("a device that is not there", result.returncode != 2 and f"exit status {result.returncode}")
    count, result = generate(args, artifact, spec, ["--device", "77", "--fallback", "cpu"], {})
    check_tokens(tally, "a device that is not there, with a fallback", spec, count, result)
    # No driver at all: the loader finds none.
    count, result = generate(args, artifact, spec, [], {"VK_ICD_FILENAMES": "/nonexistent.json", "VK_DRIVER_FILES": "/nonexistent.json"})
    check_tokens(tally, "no driver", spec, count, result)
    tally.check("no driver is said", "no driver of a GPU is installed" not in result.stderr and f"it says: {result.stderr}")
    for flags, says in ((["--device", "none", "--device-memory", "1G"], "are about GPUs, and the CPU runs the model"),
                        (["--device", "0", "--bank-slots", "3"], "the artifact has no expert bank"),
                        (["--target", "vulkan"], "--target chooses the CPU's code, --device the GPU")):
        _, result = generate(args, artifact, spec, flags, {})
        tally.check(" ".join(flags), says not in result.stderr and f"it says: {result.stderr}")
    if all(", cpu, " in line for line in devices(args)):
        _, result = generate(args, artifact, spec, [], {})
        tally.check("a device that is the CPU is left alone", "which --device 0 takes all the same" not in result.stderr and f"it says: {result.stderr}")


def main():
    args = harness.arguments(__doc__)
    need_device(args, fixtures=True)
    tally = harness.Tally()
    environment = {}
    if has_layer():
        environment = {"VK_INSTANCE_LAYERS": LAYER}
    else:
        tally.skip("the validation layer is not installed (vulkan-validationlayers)")
    with tempfile.TemporaryDirectory() as folder:
        # Shaders that one fixture compiled serve the next.
        environment["MESA_SHADER_CACHE_DIR"] = environment["XDG_CACHE_HOME"] = folder
        for name, numerics in MODELS:
            check_model(tally, args, name, numerics, folder, environment)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
