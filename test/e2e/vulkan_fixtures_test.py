#!/usr/bin/env python3
"""Greedy tokens of fixtures on a device of Vulkan (the software device of Mesa where there is no other) against the recorded ones: one of
each kind of layer, all of them with CORTIQ_TEST_ALL. Nothing may be left to the CPU, and the validation layer has nothing to say."""
import glob
import json
import os
import re
import subprocess
import sys
import tempfile

import harness
import vulkan_test

# Experts with 8-bit activations, short convolutions, latent attention with shared experts, the gated delta rule, experts with biases.
FEW = [("models/qwen2_moe-q8", "fast"), ("models/lfm2-q8", "exact"), ("models/deepseek_v3-f16", "exact"), ("models/qwen3_5-q4tp", "exact"),
       ("models-gguf/gpt-oss-mxfp4", "exact")]
# The same without optional features, exchanges in subgroups among them: dense, experts, a recurrent state.
PLAIN = [("models/llama-q8", "fast"), ("models/qwen2_moe-q8", "fast"), ("models/qwen3_5-q4tp", "exact")]
# Prompts in pieces of so many tokens, where a last one is left by itself: products and attention, a recurrent state.
CUT = [("models/llama-q8", "fast"), ("models/lfm2-q8", "exact")]
PIECES, CUT_PROMPT = (7, 64), [token * 53 % 480 + 3 for token in range(36)]
LEFT = re.compile(r"in between: (\d+)")


def all_fixtures(args):
    for folder in ("models", "models-gguf"):
        for path in sorted(glob.glob(os.path.join(args.fixtures, folder, "*.expect.json"))):
            yield f"{folder}/{os.path.basename(path).removesuffix('.expect.json')}", "exact"


def check_case(tally, args, label, spec, case, numerics, folder, environment):
    here, artifact = os.path.join(args.fixtures, os.path.dirname(label)), os.path.join(folder, "model.cqa")
    model = os.path.join(here, case.get("file") or spec["model"])
    if not os.path.exists(model):  # made by attaching a skill to its base
        base, skill = (os.path.join(here, f) for f in spec["files"][:2])
        model = os.path.join(folder, case["file"])
        attached = harness.run([os.path.join(args.bin, "cortiq-skill"), "attach", base, skill, "-o", model])
        if attached.returncode:
            tally.check(label, f"attaching the skill: {harness.first_line(attached)}")
            return
    compiled = harness.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact, "--target", "vulkan", "--numerics", numerics], timeout=600)
    if why_not := harness.why_not_success(compiled):
        tally.check(label, f"compile: {why_not}")
        return
    count = len(case["greedy_ids"])
    command = [os.path.join(args.bin, "cortiq-run"), artifact, "--device", "0", "--tokens", ",".join(map(str, case["prompt_ids"])), "-n", str(count),
               "--temp", "0", "--ignore-eos", "--json", "--stats", *case.get("cli_flags", []), *spec.get("run_args", [])]
    result = subprocess.run(command, capture_output=True, text=True, timeout=1200, env={**os.environ, **environment})
    vulkan_test.check_tokens(tally, label, case, count, result)
    left = LEFT.search(result.stderr)
    tally.check(f"{label}: all on the device", (not left or left[1] != "0") and f"--stats says: {result.stderr}")
    heard = [line for line in (result.stdout + result.stderr).splitlines() if "VUID" in line or "Validation" in line]
    tally.check(f"{label}: validation layer", heard and heard[0])


def check_cut(tally, args, label, numerics, folder, environment):
    """The logits of all positions, and what is generated behind them once the session went back and read the prompt again."""
    found = {}
    for piece in PIECES:
        artifact, logits = os.path.join(folder, "model.cqa"), os.path.join(folder, "logits.f32")
        for command in ([os.path.join(args.bin, "cortiq-compile"), os.path.join(args.fixtures, label + ".cmf"), "-o", artifact,
                         "--target", "vulkan", "--numerics", numerics, "--max-batch", str(piece)],
                        [os.path.join(args.bin, "cortiq-run"), artifact, "--device", "0", "--tokens", ",".join(map(str, CUT_PROMPT)), "-n", "6",
                         "--temp", "0", "--ignore-eos", "--json", "--logits", logits]):
            result = harness.run(command, timeout=600, env={**os.environ, **environment})
            if why_not := harness.why_not_success(result):
                tally.check(f"{label} in pieces of {piece}", why_not)
                return
        with open(logits, "rb") as f:
            found[piece] = f.read(), json.loads(result.stdout)["tokens"]
    for piece in PIECES[:-1]:
        (logits, tokens), (whole_logits, whole_tokens) = found[piece], found[PIECES[-1]]
        tally.check(f"{label} in pieces of {piece}: logits as of the whole prompt", logits != whole_logits and "they differ")
        tally.check(f"{label} in pieces of {piece}: tokens as of the whole prompt", tokens != whole_tokens and f"{tokens}, not {whole_tokens}")


def main():
    args = harness.arguments(__doc__)
    vulkan_test.need_device(args, fixtures=True)
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        # Shaders that one fixture compiled serve the next.
        caches = {"MESA_SHADER_CACHE_DIR": folder, "XDG_CACHE_HOME": folder}
        if vulkan_test.has_layer():
            caches["VK_INSTANCE_LAYERS"] = vulkan_test.LAYER
        else:
            tally.skip("the validation layer is not installed (vulkan-validationlayers)")
        plain = {**caches, "CORTIQ_GPU_FAULTS": "features=none"}
        rows = list(all_fixtures(args)) if os.environ.get("CORTIQ_TEST_ALL") else FEW
        for label, numerics, environment in [(*row, caches) for row in rows] + [(*row, plain) for row in PLAIN]:
            with open(os.path.join(args.fixtures, label + ".expect.json")) as f:
                spec = json.load(f)
            for case in spec.get("cases") or [spec]:
                check_case(tally, args, label, spec, case, numerics, folder, environment)
        for label, numerics in CUT:
            check_cut(tally, args, label, numerics, folder, caches)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
