#!/usr/bin/env python3
"""Mixtures whose experts do not all have a place on the device: an expert bank holds a part of them, the CPU runs the others beside
it. Greedy tokens of fixtures against the recorded ones, with the validation layer listening; then refusals."""
import json
import os
import re
import sys

import harness
import vulkan_test

harness.tiny_models()
from overlay_files import CmfParts  # noqa: E402

# One of each codec that the bank reads, with the experts of all layers
# (the last with biases, and sums that are bent at a limit).
MODELS = [("qwen3_moe-q4tp", 16), ("qwen3_moe-q2tp", 16), ("qwen3_moe16-mxfp4", 48), ("gpt-oss-mxfp4", 8)]
LINE = re.compile(r"experts on the GPU: room for (\d+) of (\d+), .* in (\d+) of (\d+) segments; ([\d.]+)% of (\d+) uses there, (\d+) run by the CPU; "
                  r"moved ([\d.]+) MB")


class Bank:
    def __init__(self, args, tally, folder, environment):
        self.args, self.tally, self.folder, self.environment = args, tally, folder, environment

    def compile(self, name, *flags, numerics="exact"):
        artifact = os.path.join(self.folder, name + "".join(flags) + numerics + ".cqa")
        compiled = harness.run([os.path.join(self.args.bin, "cortiq-compile"), vulkan_test.model_file(self.args, name), "-o", artifact,
                                "--target", "vulkan", "--numerics", numerics, *flags])
        if compiled.returncode:
            self.tally.check(name, f"compile {flags}: {harness.first_line(compiled)}")
            return None
        self.compiler_said = compiled.stderr
        return artifact

    def run(self, label, artifact, name, *flags, environment=None):
        """What the bank's line says; none where there is none. The tokens are those of the record."""
        spec = vulkan_test.expectation(self.args, name)
        count, result = vulkan_test.generate(self.args, artifact, spec, ["--device", "0", *flags], {**self.environment, **(environment or {})})
        vulkan_test.check_tokens(self.tally, label, spec, count, result)
        said = [line for line in (result.stdout + result.stderr).splitlines() if "VUID" in line or "Validation" in line]
        self.tally.check(f"{label}: validation layer", said and said[0])
        found = LINE.search(result.stderr)
        return (found, result)

    def check(self, label, found, result, says):
        self.tally.check(label, (not found or not says(*(float(word) for word in found.groups()))) and f"--stats says: {result.stderr}")


def check_models(bank):
    for name, experts in MODELS:
        artifact = bank.compile(name, "--gpu-experts=bank")
        if not artifact:
            continue
        label = f"{name}, all experts in the bank"
        found, result = bank.run(label, artifact, name)
        bank.check(label, found, result, lambda room, of, used, segments, hits, uses, cold, moved: room == of == experts and uses > 0 and cold == 0)
        for slots in (1, experts // 2):
            label = f"{name}, {slots} of {experts} experts in the bank"
            found, result = bank.run(label, artifact, name, "--bank-slots", str(slots))
            bank.check(label, found, result, lambda room, of, used, segments, hits, uses, cold, moved:
                       room == slots and of == experts and segments == 8 and 0 < cold < uses)
        if name != MODELS[0][0]:
            continue
        label = f"{name}, sixteen segments"
        found, result = bank.run(label, artifact, name, "--bank-slots", "14", "--bank-segments", "16")
        bank.check(label, found, result, lambda room, of, used, segments, hits, uses, cold, moved: segments == 16 and used == room == 14)
        check_policies(bank, artifact, name)
        check_with_memory(bank, artifact, name)
        check_two_devices(bank, artifact, name)
        check_modes(bank, name)
        check_model_file(bank, name)
        check_second_codec(bank)
        check_refusals(bank, artifact, name)


def check_policies(bank, artifact, name):
    # Eight segments of one expert's matrices each are too small for fourteen.
    label = f"{name}, segments of one expert"
    one = {"CORTIQ_GPU_FAULTS": "matrix=30000"}
    found, result = bank.run(label, artifact, name, "--bank-slots", "14", environment=one)
    bank.check(label, found, result, lambda room, of, used, segments, *rest: segments == 16 and room == 14)
    label += ", eight of them"
    found, result = bank.run(label, artifact, name, "--bank-slots", "14", "--bank-segments", "8", environment=one)
    bank.check(label, found, result, lambda room, of, used, segments, *rest: segments == 8 and room == 8)
    label = f"{name}, no memory for sixteen segments"
    found, result = bank.run(label, artifact, name, "--bank-slots", "14", environment={"CORTIQ_GPU_FAULTS": "matrix=30000,allocate=1"})
    bank.check(label, found, result, lambda room, of, used, segments, *rest: segments == 8 and room == 8)
    bank.tally.check(label + ", said", "the expert bank has 8 segments" not in result.stderr and f"--stats says: {result.stderr}")


def check_refusals(bank, artifact, name):
    label = "a budget without room for experts"
    # Half of it is work space, and weights have to fit as well.
    found, result = bank.run(label, artifact, name, "--device-memory", "430K")
    bank.tally.check(label, (found or "no place for experts" not in result.stderr) and f"--stats says: {result.stderr}")
    for module in ("bank_gate_up_q4tp", "bank_down_q4tp", "bank_remap"):
        label = f"a driver that refuses {module}"
        found, result = bank.run(label, artifact, name, environment={"CORTIQ_GPU_FAULTS": f"pipeline={module}"})
        bank.tally.check(label, (found or "was refused by" not in result.stderr) and f"--stats says: {result.stderr}")
    label = "the device is lost beside the CPU's experts"
    found, result = bank.run(label, artifact, name, "--bank-slots", "8", "--fallback", "cpu", environment={"CORTIQ_GPU_FAULTS": "submit=9"})
    artifact = bank.compile("qwen3_moe-f16", "--gpu-experts=bank")
    if artifact:
        label = "a codec that the bank does not read"
        bank.tally.check(f"{label}, said by the compiler", "note: no expert lies in the bank" not in bank.compiler_said and bank.compiler_said)
        found, result = bank.run(label, artifact, "qwen3_moe-f16", "--verbose")
        bank.tally.check(label, (found or "the bank does not read experts of f16" not in result.stderr) and f"--verbose says: {result.stderr}")
    bank.compile("llama-q8", "--gpu-experts=bank")
    bank.tally.check("a model without experts", "the model has no mixtures of experts" not in bank.compiler_said and bank.compiler_said)


def check_with_memory(bank, artifact, name):
    """Missing experts come from the file, under the smallest budget that works."""
    refused = harness.run([os.path.join(bank.args.bin, "cortiq-run"), artifact, "--tokens", "1", "-n", "1", "--device", "none", "--memory", "4K"])
    least = re.search(r"the least that works is (--memory) (\d+M)", refused.stderr)
    bank.tally.check("the least --memory is named", not least and refused.stderr)
    if least:
        label = f"{name}, --memory {least[2]} beside the bank"
        found, result = bank.run(label, artifact, name, "--bank-slots", "8", *least.groups())
        bank.check(label, found, result, lambda room, of, used, segments, hits, uses, cold, moved: room == 8 and cold > 0)
        bank.tally.check(label + ", said", "uses in memory" not in result.stderr and f"--stats says: {result.stderr}")


def check_modes(bank, name):
    for flag, numerics in (("--gpu-experts=bank-bf16", "exact"), ("--gpu-experts=bank", "fast")):
        artifact = bank.compile(name, flag, numerics=numerics)
        if artifact:
            label = f"{name}, {flag}, {numerics}"
            found, result = bank.run(label, artifact, name, "--bank-slots", "10")
            bank.check(label, found, result, lambda room, of, used, segments, hits, uses, cold, moved: room == 10 and 0 < cold < uses)


def check_model_file(bank, name):
    """A model in the place of an artifact, which is kept apart from the one without a bank."""
    model, cache = vulkan_test.model_file(bank.args, name), ("--cache", os.path.join(bank.folder, "models"))
    for flags, room in ((("--gpu-experts=bank", "--bank-slots", "10"), 10), ((), None)):
        label = f"{name}.cmf {' '.join(flags)}"
        found, result = bank.run(label, model, name, "--target", "vulkan", "--numerics", "exact", *flags, *cache)
        if room:
            bank.check(label, found, result, lambda slots, of, used, segments, hits, uses, cold, moved: slots == room and 0 < cold < uses)
        else:
            bank.tally.check(label, found and f"--stats says: {result.stderr}")


def check_second_codec(bank):
    """A model has one bank: a layer with experts of another codec stays with the CPU, which is said."""
    parts, other = (CmfParts(vulkan_test.model_file(bank.args, f"qwen3_moe-{codec}")) for codec in ("q4tp", "q2tp"))
    parts.tensors = parts.replaced(other.named(".1.mlp.experts."))
    model, artifact = parts.write(os.path.join(bank.folder, "two-codecs.cmf")), os.path.join(bank.folder, "two-codecs.cqa")
    compiled = harness.run([os.path.join(bank.args.bin, "cortiq-compile"), model, "-o", artifact, "--target", "vulkan", "--numerics", "exact", "--gpu-experts=bank"])
    bank.tally.check("a bank and a second codec: compile", harness.why_not_success(compiled))
    if compiled.returncode:
        return
    spec = vulkan_test.expectation(bank.args, "qwen3_moe-q4tp")
    _, result = vulkan_test.generate(bank.args, artifact, spec, ["--device", "none"], {})
    wanted = {"greedy_ids": json.loads(result.stdout)["tokens"]} if result.returncode == 0 else spec
    count, result = vulkan_test.generate(bank.args, artifact, spec, ["--device", "0", "--verbose"], bank.environment)
    vulkan_test.check_tokens(bank.tally, "a bank and a second codec", wanted, count, result)
    found = LINE.search(result.stderr)
    bank.check("a bank of the first codec", found, result, lambda room, of, used, segments, hits, uses, cold, moved: room == of == 8 and uses > 0 and cold == 0)
    bank.tally.check("a second codec is told", "a model has one bank" not in result.stderr and f"it says: {result.stderr}")


def check_two_devices(bank, artifact, name):
    spec = vulkan_test.expectation(bank.args, name)
    count, result = vulkan_test.generate(bank.args, artifact, spec, ["--device", "0,0", "--bank-slots", "4"], bank.environment)
    label = f"{name}, a bank on each of two devices"
    vulkan_test.check_tokens(bank.tally, label, spec, count, result)
    rooms = [found[1] for found in LINE.finditer(result.stderr)]
    bank.tally.check(label + ", said", rooms != ["4", "4"] and f"--stats says: {result.stderr}")


if __name__ == "__main__":
    sys.exit(vulkan_test.run_layered(__doc__, lambda tally, args, folder, environment: check_models(Bank(args, tally, folder, environment))))
