#!/usr/bin/env python3
"""Skills, blends, masks and routing on a device of Vulkan (the software device of Mesa where there is no other): recorded tokens, logits
as on the CPU, and nothing that is left to it. Then matrices that the device cannot bind as a whole."""
import json
import os
import random
import re
import struct
import sys

import harness
import vulkan_test
from overlay_test import Overlay, rms, run_checks

if harness.CASES not in sys.path:
    sys.path.insert(0, harness.CASES)
from overlay_files import CmfParts

TOKENS = [5, 17, 99, 300, 12, 700, 33, 1]
LOW_RANK = 19  # type of a tensor in a CMF file
ERROR = 2e-5  # relative RMS of logits: f32 sums in another order, with the device's exp
LEFT = re.compile(r"in between: (\d+)")
# Cases that have a mask, a skipped layer, skills and blends, closed experts.
RECORDED = [("masks-ffn", ("task mild", "task skiplayer")), ("masks-heads", ("task heads",)), ("moe-specialist", ("task narrow",)),
            ("skills", ("skill story", "blend story:0.25,code:0.75")), ("skills-sparse", ("skill story with its mask",))]


class GpuOverlay(Overlay):
    def __init__(self, args, scratch):
        super().__init__(args, scratch)
        vulkan_test.need_device(args)
        # Shaders that one model compiled serve the next.
        self.environment = {"MESA_SHADER_CACHE_DIR": scratch.path("shaders"), "XDG_CACHE_HOME": scratch.path("shaders")}
        if vulkan_test.has_layer():
            self.environment["VK_INSTANCE_LAYERS"] = vulkan_test.LAYER

    def call(self, name, *flags, **options):
        return super().call(name, *flags, env={**os.environ, **self.environment}, **options)

    def for_gpu(self, model, *flags, numerics="exact"):
        return self.compile(model, "--target", "vulkan", *flags, numerics=numerics)


def all_there(result):
    left = LEFT.search(result.stderr)
    return None if left and left[1] == "0" else f"--stats says: {result.stderr}"


def heard(result):
    said = [line for line in (result.stdout + result.stderr).splitlines() if "VUID" in line or "Validation" in line]
    return said[0] if said else None


def check_recorded(tally, o):
    for name, labels in RECORDED:
        programs = {}
        for case in json.load(open(o.model(name + ".expect.json")))["cases"]:
            if case["label"] not in labels:
                continue
            program = programs.setdefault(case["file"], None) or o.for_gpu(o.model(case["file"]))
            programs[case["file"]] = program
            count = min(8, len(case["greedy_ids"]))
            result = o.tool("cortiq-run", program, "--device", "0", "--tokens", ",".join(map(str, case["prompt_ids"])), "-n", str(count), "--temp", "0",
                            "--ignore-eos", "--json", "--stats", *case["cli_flags"])
            vulkan_test.check_tokens(tally, f"{name}, {case['label']}", case, count, result)
            tally.check(f"{name}, {case['label']}: all on the device", all_there(result))
            tally.check(f"{name}, {case['label']}: validation layer", heard(result))


def check_against_cpu(tally, o, label, program, *selections, room=(), says=None):
    """With `says` a part is left to the CPU, which --verbose explains with these words."""
    for flags in selections:
        got, want = (o.logits(program, TOKENS, "--device", device, *flags) for device in ("0", "none"))
        if room:
            got = o.logits(program, TOKENS, "--device", "0", *flags, *room)
        error = rms([x - y for x, y in zip(got, want)]) / rms(want)
        tally.check(f"{label} {' '.join(flags)}", None if error < ERROR else f"relative RMS {error:.2e}")
    result = o.tool("cortiq-run", program, "--device", "0", "--tokens", "5,6,7", "-n", "2", "--temp", "0", "--ignore-eos", "--stats", "--verbose", *flags, *room)
    if says:
        left = LEFT.search(result.stderr)
        tally.check(f"{label} {' '.join(flags)}: counted", None if left and left[1] != "0" and says in result.stderr else f"it says: {result.stderr}")
    else:
        tally.check(f"{label} {' '.join(flags)}: all on the device", all_there(result))
    tally.check(f"{label} {' '.join(flags)}: validation layer", heard(result))


def check_mixtures(tally, o):
    """Skills of other codecs than the model's, of norms, the head and the embedding too; blends of those; weights with column scales."""
    parts, other = CmfParts(o.model("qwen2-q8_2f.cmf")), CmfParts(o.model("qwen2-q8_2f.cmf"))
    turned = [t for t in other.tensors if t[0].endswith(("down_proj.weight", "q_proj.weight"))]
    turned = [(t[0], *turned[(i + 2) % len(turned)][1:]) for i, t in enumerate(turned)]
    norms = [t for t in other.tensors if t[0].endswith("layernorm.weight")]
    parts.add_skill("a", turned + [(t[0], *norms[(i + 1) % len(norms)][1:]) for i, t in enumerate(norms)])
    parts.add_skill("b", turned[::2] + [t for t in other.tensors if "embed_tokens" in t[0]])
    program = o.for_gpu(parts.write(o.scratch.output(".cmf")))
    check_against_cpu(tally, o, "mixtures", program, ["--skill", "a"], ["--skill", "none"], ["--blend", "a:1.5,b:-0.5"])


def check_experts(tally, o):
    """Blends beside an expert bank, whose tables every blend has among its vectors; experts that a skill replaces, which the CPU runs."""
    parts = CmfParts(o.model("qwen3_moe-q4tp.cmf"))
    norms, experts = parts.named("layernorm.weight"), parts.named(".1.mlp.experts.2.")
    parts.add_skill("a", [(t[0], *norms[(i + 1) % len(norms)][1:]) for i, t in enumerate(norms)])
    parts.add_skill("b", [(t[0], *norms[(i + 3) % len(norms)][1:]) for i, t in enumerate(norms)])
    program = o.for_gpu(parts.write(o.scratch.output(".cmf")), "--gpu-experts=bank")
    for room in (("--bank-slots", "16"), ("--bank-slots", "6")):
        check_against_cpu(tally, o, f"a bank, {' '.join(room)}", program, ["--skill", "a"], ["--blend", "a:0.4,b:0.7"], room=room)
    # Experts move between slots, and the tables of a blend follow.
    moving = [o.tool("cortiq-run", program, "--tokens", "5,6,7", "-n", "48", "--temp", "0", "--ignore-eos", "--json", "--stats", "--blend", "a:0.4,b:0.7", *flags)
              for flags in (("--device", "0", "--bank-slots", "4"), ("--device", "none"))]
    got, want = (json.loads(result.stdout)["tokens"] for result in moving)
    tally.check("a blend beside a bank that moves", None if got == want and re.search(r"moved (?!0\.0)", moving[0].stderr)
                else f"{got}, on the CPU {want}: {moving[0].stderr}")
    parts.add_skill("c", [(t[0], *experts[(i + 1) % len(experts)][1:]) for i, t in enumerate(experts) if "down" not in t[0]])
    model = parts.write(o.scratch.output(".cmf"))
    for experts in ("all", "bank"):
        check_against_cpu(tally, o, f"experts of a skill, {experts}", o.for_gpu(model, f"--gpu-experts={experts}"), ["--skill", "none"], ["--skill", "c"],
                          ["--blend", "a:0.4,c:0.7"], says="its experts depend on the skill in force")


def check_low_rank_table(tally, o):
    """An embedding of low rank: there is no shader for it, the CPU reads its rows."""
    parts, rank, noise = CmfParts(o.model("llama-q8.cmf")), 8, random.Random(3)
    name, _, (rows, cols), _ = next(t for t in parts.tensors if "embed_tokens" in t[0])
    scales = [noise.uniform(0.05, 0.2) for _ in range(rows + cols + rank)]
    payload = struct.pack(f"<4B3I{len(scales)}e", 0x4C, 1, 1, 0, rank, rows, cols, *scales) + noise.randbytes(rows * rank // 8 + rank * cols // 8)
    parts.tensors = parts.replaced([(name, LOW_RANK, (rows, cols), payload)])
    check_against_cpu(tally, o, "an embedding of low rank", o.for_gpu(parts.write(o.scratch.output(".cmf"))), [], says="there is no shader for embed on blr")


def check_chat(tally, o):
    """What is in force changes between turns, and what was computed before it stays."""
    for file, text in (("skills.cmf", "one\n/skill story\ntwo\n/blend story:1,code:1\nthree\n/skill none\nfour\n"),
                       ("masks-ffn.cmf", "one\n/task skiplayer\ntwo\n/task mild\nthree\n")):
        program = o.for_gpu(o.model(file))
        on, off = (o.tool("cortiq-run", program, "--chat", "-n", "5", "--temp", "0", "--ignore-eos", "--json", "--device", device, input=text) for device in ("0", "none"))
        got, want = ([json.loads(line)["tokens"] for line in result.stdout.splitlines()] for result in (on, off))
        tally.check(f"chat on {file}", None if got == want and len(got) >= 3 else f"{got}, on the CPU {want}")
        tally.check(f"chat on {file}: validation layer", heard(on))


def check_routing(tally, o):
    program = o.for_gpu(o.model("skills.cmf"))
    prompt = "The quick brown fox jumps over the lazy dog near the river bank."
    results = [o.tool("cortiq-run", program, "-p", prompt, "-n", "2", "--temp", "0", "--json", "--stats", "--skill", "auto", "--device", device) for device in ("0", "none")]
    got, want = (json.loads(result.stdout)["overlay"] for result in results)
    near = all(a["id"] == b["id"] and abs(a["e"] - b["e"]) < 1e-4 for a, b in zip(got["scores"], want["scores"]))
    tally.check("routing: scores", None if near and got["skills"] == want["skills"] else f"{got}, on the CPU {want}")
    tally.check("routing: all on the device", all_there(results[0]))


def check_parts(tally, o):
    """Matrices beyond what the device binds are multiplied in parts, which have the bits of the whole."""
    for name, numerics, size in (("llama-q8", "fast", 40000), ("qwen3-vbit", "exact", 60000)):
        program = o.for_gpu(o.model(name + ".cmf"), "--gpu-range", str(size), numerics=numerics)
        whole = o.logits(program, TOKENS, "--device", "0")
        o.environment["CORTIQ_GPU_FAULTS"] = f"matrix={size + 1024}"
        cut = o.logits(program, TOKENS, "--device", "0")
        result = o.tool("cortiq-run", program, "--device", "0", "--tokens", "5,6,7", "-n", "2", "--temp", "0", "--ignore-eos", "--stats")
        tally.check(f"{name} in parts: the bits of the whole", None if cut == whole else "logits differ")
        tally.check(f"{name} in parts: all on the device", all_there(result))
        tally.check(f"{name} in parts: validation layer", heard(result))
        del o.environment["CORTIQ_GPU_FAULTS"]
    # Stacks of experts and segments of a bank have no parts.
    for experts, says in (("all", "binds at most 41024"), ("bank", "the device binds at most 8000")):
        program = o.for_gpu(o.model("qwen3_moe-q4tp.cmf"), "--gpu-range", "40000", f"--gpu-experts={experts}")
        o.environment["CORTIQ_GPU_FAULTS"] = f"matrix={says.rsplit(' ', 1)[1]}"
        check_against_cpu(tally, o, f"experts beyond the device's range, {experts}", program, [], says=says)
        del o.environment["CORTIQ_GPU_FAULTS"]
    # No row fits the first, and the second leaves too many parts: there are none, and what a device then cannot bind is the CPU's.
    for size in ("1", "700"):
        program = o.for_gpu(o.model("llama-q8.cmf"), "--gpu-range", size)
        result = o.tool("cortiq-run", program, "--device", "0", "--tokens", "5,6,7", "-n", "2", "--temp", "0", "--ignore-eos", "--stats")
        tally.check(f"a range of {size} bytes: all on the device", all_there(result))


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, (check_recorded, check_mixtures, check_experts, check_low_rank_table, check_chat, check_routing, check_parts), GpuOverlay))
