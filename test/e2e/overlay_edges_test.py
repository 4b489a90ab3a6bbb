#!/usr/bin/env python3
"""Skills and masks at their edges: other codecs than the model's own, blends of any of them, masks that leave no expert, words that
name nothing. Compiled models are held against the reference, and against models that have a skill's tensors as their own.
"""
import json
import sys

import harness
from overlay_test import Overlay, rms

if harness.CASES not in sys.path:
    sys.path.insert(0, harness.CASES)
from overlay_files import CmfParts

TOKENS = [5, 17, 99, 300, 12, 700, 33, 1]
EXACT_ERROR = 5e-6  # relative RMS of logits: f32 sums in another order


def difference(got, want):
    if len(got) != len(want):
        return f"{len(got)} logits, expected {len(want)}"
    error = rms([x - y for x, y in zip(got, want)]) / rms(want)
    return None if error < EXACT_ERROR else f"relative RMS {error:.2e}"


def against_reference(o, model, program, *flags):
    return difference(o.logits(program, TOKENS, *flags), o.logits(model, TOKENS, "--backend=reference", *flags))


def check_codecs(tally, o):
    """One skill a codec over a model of another: each gives the logits of the file that it came from, to the bit."""
    parts, codecs = CmfParts(o.model("qwen3-q4tp.cmf")), ["mxfp4", "q1s", "q1t", "q2tp", "q4", "q4t", "vbit"]
    names = {t[0] for t in parts.tensors}
    for codec in codecs:
        parts.add_skill(codec, [t for t in CmfParts(o.model(f"qwen3-{codec}.cmf")).tensors if t[0] in names])
    model = parts.write(o.scratch.output(".cmf"))
    for numerics in ("exact", "fast"):
        program = o.compile(model, numerics=numerics)
        for codec in codecs:
            own = o.compile(o.model(f"qwen3-{codec}.cmf"), numerics=numerics)
            same = o.logits(program, TOKENS, "--skill", codec) == o.logits(own, TOKENS)
            tally.check(f"skill in {codec}, {numerics}: as its own file", None if same else "logits differ")


def check_blends(tally, o):
    """Blends where the model, or some skill, has weights with column scales: what those read is made for them alone."""
    for base, others in (("llama-q8", "llama-mixed"), ("llama-mixed", "llama-q8"), ("llama-f16", "llama-mixed"), ("qwen2-q8_2f", None), ("qwen3_next-q8_2f", None)):
        parts = CmfParts(o.model(base + ".cmf"))
        other = CmfParts(o.model((others or base) + ".cmf"))
        q = [t for t in other.tensors if t[0].endswith(("lm_head.weight", "down_proj.weight", "q_proj.weight", "in_proj_qkv.weight"))]
        # The same tensors one layer on, so that a skill differs also where the codec is the same.
        turned = [(t[0], *q[(i + 1) % len(q)][1:]) if q[(i + 1) % len(q)][2] == t[2] else t for i, t in enumerate(q)]
        parts.add_skill("a", turned)
        parts.add_skill("b", turned[::2])
        model = parts.write(o.scratch.output(".cmf"))
        program = o.compile(model)
        for flags in (["--skill", "a"], ["--blend", "a:0.5,b:0.5"], ["--blend", "b:3,a:1"], ["--blend", "a:1.5,b:-0.5"]):
            tally.check(f"{base} {' '.join(flags)}", against_reference(o, model, program, *flags))


def check_masks_without_experts(tally, o):
    """Where a mask closes all experts of a layer, the layer adds nothing but its shared experts."""
    for name in ("qwen3_moe-q4tp", "qwen2_moe-q8", "deepseek_v2-q4t", "qwen3_next-q8_2f"):
        parts = CmfParts(o.model(name + ".cmf"))
        top_k = parts.arch["moe"]["top_k"]
        parts.set_masks({"name": "none_left", "experts": lambda layer, expert: False}, {"name": "fewer", "experts": lambda layer, expert: expert < top_k - 1},
                        {"name": "one_layer", "experts": lambda layer, expert: layer != 1})
        model = parts.write(o.scratch.output(".cmf"))
        program = o.compile(model)
        for task in ("none_left", "fewer", "one_layer"):
            tally.check(f"{name}, {task}", against_reference(o, model, program, "--task", task))
            fixed = o.compile(model, "--task", task)
            same = o.logits(fixed, TOKENS) == o.logits(program, TOKENS, "--task", task)
            tally.check(f"{name}, {task}: compiled as run", None if same else "logits differ")


def check_words(tally, o):
    """What cannot be meant is refused in one sentence; in a chat it leaves everything as it was."""
    program = o.compile(o.model("skills.cmf"))
    for flags in (["--blend", "story:0"], ["--blend", "story:-1"], ["--blend", "story:0.5,code:-0.5"], ["--blend", "story:nan"], ["--blend", ""],
                  ["--skill", ""], ["--task", ""], ["--blend", "story:1,story:1"], ["--skill", "story", "--blend", "code:1"], ["--skill", "poet"]):
        tally.check(f"{flags}", harness.why_not_refusal(o.call("cortiq-run", program, "--tokens", "1", "-n", "1", *flags)))
    chat = o.tool("cortiq-run", program, "--chat", "-n", "1", "--temp", "0", "--json", "--skill", "code",
                  input="/skill\n/skill   story \n/blend\t story:1,code:1\n/blend story:0\n/skill auto\n/skill\none\n")
    said = chat.stderr.splitlines() + 5 * [""]
    expected = ["(skill code, no mask)", "(skill story, no mask)", "(blend story:0.5,code:0.5, no mask)"]
    tally.check("chat: what is in force", None if said[:3] == expected else f"{said}")
    tally.check("chat: a blend of nothing", None if "more than 0" in said[3] else said[3])
    tally.check("chat: the next prompt chooses", None if said[4] == "(the next prompt chooses the skill)" else said[4])
    parts = CmfParts(o.model("qwen3-q4t.cmf"))
    parts.add_skill("a\nb\x1b[1m", parts.named("down_proj"))
    odd = o.compile(parts.write(o.scratch.output(".cmf")))
    tally.check("a skill's name stays in its line", harness.why_not_refusal(o.call("cortiq-run", odd, "--tokens", "1", "-n", "1", "--skill", "poet")))
    slip = o.tool("cortiq-run", odd, "--chat", "-n", "1", "--temp", "0", "--json", input="/skill auto\none\n")
    answers = [json.loads(line) for line in slip.stdout.splitlines()]
    tally.check("chat: auto without descriptors is a slip", None if len(answers) == 1 and "name one" in slip.stderr else slip.stderr)


def main():
    args = harness.arguments(__doc__)
    harness.need_fixtures(args, "models")
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        overlay = Overlay(args, scratch)
        for check in (check_codecs, check_blends, check_masks_without_experts, check_words):
            try:
                check(tally, overlay)
            except RuntimeError as error:
                tally.check(check.__name__, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
