#!/usr/bin/env python3
"""Skills and masks at their edges: other codecs than the model's own, blends of any of them, masks that leave no expert, words that
name nothing. Compiled models are held against the reference, and against models that have a skill's tensors as their own.
"""
import json
import os
import re
import sys

import harness
from overlay_test import rms, run_checks

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


def check_low_rank(tally, o):
    """A low-rank weight is two products a path: as the model's own, as a skill's, and beside weights of other codecs in one product."""
    whole = {name: CmfParts(o.model(f"llama-{name}.cmf")) for name in ("blr", "q8")}
    for base, other in (("blr", "q8"), ("q8", "blr"), ("f16", "blr"), ("blr", "blr")):
        parts = CmfParts(o.model(f"llama-{base}.cmf"))
        picked = [t for t in whole[other].named("_proj") if "k_proj" not in t[0]]
        if base == other:  # other weights of the same shape
            picked = [(mine[0], *theirs[1:]) for mine, theirs in zip(picked, picked[6:] + picked[:6])]
        parts.add_skill("a", picked)
        parts.add_skill("b", picked[::2])
        model = parts.write(o.scratch.output(".cmf"))
        own = CmfParts(o.model(f"llama-{base}.cmf"))
        own.tensors = own.replaced(picked)
        alone = own.write(o.scratch.output(".cmf"))
        for numerics in ("exact", "fast"):
            program = o.compile(model, numerics=numerics)
            same = o.logits(program, TOKENS, "--skill", "a") == o.logits(o.compile(alone, numerics=numerics), TOKENS)
            tally.check(f"{other} over {base}, {numerics}: as its own file", None if same else "logits differ")
            same = o.logits(program, TOKENS) == o.logits(o.compile(o.model(f"llama-{base}.cmf"), numerics=numerics), TOKENS)
            tally.check(f"{other} over {base}, {numerics}: the model's own", None if same else "logits differ")
        program = o.compile(model)
        for flags in (["--skill", "a"], ["--skill", "b"], ["--blend", "a:0.5,b:0.5"]):
            tally.check(f"{other} over {base} {' '.join(flags)}", against_reference(o, model, program, *flags))


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


def check_budgets(tally, o):
    """Skills, masks and blends of experts under the least --memory that works: the same bits. A blend's weights count."""
    parts, other = CmfParts(o.model("qwen3_moe16-q4t.cmf")), CmfParts(o.model("qwen3_moe16-mxfp4.cmf"))
    parts.add_skill("x", other.named(".experts."))
    parts.add_skill("y", other.named(".experts.")[::5])
    parts.set_masks({"name": "all", "priority": "Fallback"}, {"name": "odd", "experts": lambda layer, expert: expert % 2})
    program = o.compile(parts.write(o.scratch.output(".cmf")))

    def least(*flags):
        refused = o.call("cortiq-run", program, "--tokens", "1,2", "-n", "1", *flags)
        found = re.search(r"the least that works is (--memory) (\d+M)", refused.stderr)
        return [found[1], found[2]] if found and not harness.why_not_refusal(refused) else []

    budget = least("--memory", "1M")
    tally.check("the least budget is named", None if budget else "it is not")
    blend = ["--blend", "x:0.5,y:0.5"]
    larger = least(*blend, *budget)
    tally.check("a blend needs more", None if larger and larger != budget else f"{budget}, {larger}")
    for flags, memory in ([], budget), (["--skill", "x"], budget), (["--skill", "y", "--task", "odd"], budget), (blend, larger):
        same = o.logits(program, TOKENS, *flags, *memory) == o.logits(program, TOKENS, *flags)
        tally.check(f"{flags} {memory}", None if same else "logits differ")
    chat = o.tool("cortiq-run", program, "--chat", "-n", "2", "--temp", "0", "--json", *budget, input="/blend x:1,y:1\none\n/skill x\ntwo\n")
    tally.check("chat: a blend without room is a slip", None if len(chat.stdout.splitlines()) == 2 and "least that works" in chat.stderr else chat.stderr)


def check_mask_files(tally, o):
    """Masks are taken out, put into another file of the same base and taken away, and what applies when none is named stays."""
    full, part, plain = o.model("masks-ffn.cmf"), o.scratch.output(".cmf"), o.scratch.output(".cmf")
    parts = CmfParts(full)
    parts.masks = b""
    parts.features &= ~2
    parts.write(plain)
    o.tool("cortiq-skill", "extract", full, "--task", "deep", "--base", plain, "-o", part)
    listed = json.loads(o.tool("cortiq-skill", "list", part, "--json").stdout)
    tally.check("a mask alone", None if [m["name"] for m in listed["masks"]] == ["deep"] and listed["skills"][0]["tensors"] == 0 else f"{listed}")
    tally.check("a mask alone does not run", harness.why_not_refusal(o.call("cortiq-compile", part, "-o", o.scratch.output(".cqa"))))
    with_mask, without = o.scratch.output(".cmf"), o.scratch.output(".cmf")
    o.tool("cortiq-skill", "attach", plain, part, "-o", with_mask)
    program, whole = o.compile(with_mask), o.compile(full)
    same = o.logits(program, TOKENS, "--task", "deep") == o.logits(whole, TOKENS, "--task", "deep")
    tally.check("an attached mask computes the same", None if same else "logits differ")
    same = o.logits(program, TOKENS) == o.logits(o.compile(plain), TOKENS)
    tally.check("an attached mask waits to be named", None if same else "it applies at once")
    o.tool("cortiq-skill", "detach", with_mask, "--task", "deep", "-o", without)
    names = [m["name"] for m in json.loads(o.tool("cortiq-skill", "list", without, "--json").stdout)["masks"]]
    tally.check("detached", None if names == ["all"] else f"{names}")
    three = o.scratch.output(".cmf")
    o.tool("cortiq-skill", "detach", full, "--task", "general", "-o", three)
    names = [m["name"] for m in json.loads(o.tool("cortiq-skill", "list", three, "--json").stdout)["masks"]]
    tally.check("the others stay", None if names == ["mild", "deep", "skiplayer"] else f"{names}")
    same = o.logits(o.compile(three), TOKENS, "--task", "mild") == o.logits(whole, TOKENS, "--task", "mild")
    tally.check("and compute the same", None if same else "logits differ")
    out = o.scratch.output(".cmf")
    parts.set_masks({"name": "deep"})
    other = parts.write(o.scratch.output(".cmf"))
    for label, flags in (("no such mask", ["extract", full, "--task", "poet"]), ("no masks at all", ["detach", plain, "--task", "deep"]),
                         ("skill and mask at once", ["detach", full, "--task", "deep", "--id", "x"]), ("neither", ["detach", full]),
                         ("another mask of that name", ["attach", other, part])):
        tally.check(label, harness.why_not_refusal(o.call("cortiq-skill", *flags, "-o", out), out))


def check_masked_skills(tally, o):
    """A skill keeps the mask that it runs with when it goes to a base that has none."""
    full, base, skill, both = o.model("skills-sparse.cmf"), *(o.scratch.output(".cmf") for _ in range(3))
    parts = CmfParts(full)
    parts.masks, parts.header["skills"], parts.features = b"", [], parts.features & ~2
    parts.tensors = [t for t in parts.tensors if not t[0].startswith("skill.")]
    parts.write(base)
    o.tool("cortiq-skill", "extract", full, "--id", "story", "--base", base, "-o", skill)
    o.tool("cortiq-skill", "attach", base, skill, "--embed", "-o", both)
    program, whole = o.compile(both), o.compile(full)
    same = o.logits(program, TOKENS, "--skill", "story") == o.logits(whole, TOKENS, "--skill", "story")
    tally.check("a skill with its mask, embedded", None if same else "logits differ")
    same = o.logits(program, TOKENS) == o.logits(o.compile(base), TOKENS)
    tally.check("without the skill nothing is masked", None if same else "the skill's mask applies")
    out = o.scratch.output(".cmf")
    tally.check("a mask that a skill runs with stays", harness.why_not_refusal(o.call("cortiq-skill", "detach", both, "--task", "story", "-o", out), out))


def check_skill_outputs(tally, o):
    """No file of the input is replaced; ids that begin alike are told apart; a skill that only tensors name is one."""
    base, whole = o.scratch.output(".cmf"), o.scratch.output(".cmf")
    parts = CmfParts(o.model("qwen3-q4tp.cmf"))
    parts.write(base)
    codecs = {name: CmfParts(o.model(f"qwen3-{name}.cmf")) for name in ("q4t", "vbit")}
    parts.add_skill("a", codecs["q4t"].named("down_proj"))
    parts.add_skill("a.b", codecs["vbit"].named("o_proj"))
    parts.add_skill("bare", codecs["vbit"].named("up_proj"))
    parts.header["skills"].pop()
    parts.write(whole)
    before = open(base, "rb").read()
    tally.check("never onto --base", harness.why_not_refusal(o.call("cortiq-skill", "extract", whole, "--id", "a", "--base", base, "-o", base)))
    tally.check("the base is whole", None if open(base, "rb").read() == before else "it was replaced")
    for n in (1, 2, 3):
        name = f"sharded-0000{n}-of-00003.cmf"
        with open(o.scratch.path(name), "wb") as copy:
            copy.write(open(o.model(name), "rb").read())
    first, second = (o.scratch.path(f"sharded-0000{n}-of-00003.cmf") for n in (1, 2))
    before = open(second, "rb").read()
    tally.check("never onto another shard", harness.why_not_refusal(
        o.call("cortiq-skill", "extract", first, "--id", "a", "--base", base, "-o", second)))
    tally.check("the shard is whole", None if open(second, "rb").read() == before else "it was replaced")
    listed = {s["id"]: s["tensors"] for s in json.loads(o.tool("cortiq-skill", "list", whole, "--json").stdout)["skills"]}
    layers = parts.arch["num_layers"]
    tally.check("each has its own tensors", None if listed == {"a": layers, "a.b": layers, "bare": layers} else f"{listed}")
    without, alone = o.scratch.output(".cmf"), o.scratch.output(".cmf")
    o.tool("cortiq-skill", "detach", whole, "--id", "a", "-o", without)
    program = o.compile(whole)
    same = o.logits(o.compile(without), TOKENS, "--skill", "a.b") == o.logits(program, TOKENS, "--skill", "a.b")
    tally.check("a detached, a.b computes the same", None if same else "logits differ")
    o.tool("cortiq-skill", "extract", whole, "--id", "bare", "--base", base, "-o", alone)
    listed = json.loads(o.tool("cortiq-skill", "list", alone, "--json").stdout)["skills"][0]
    size = sum(len(t[3]) for t in codecs["vbit"].named("up_proj"))
    tally.check("a standalone file's size", None if (listed["tensors"], listed["bytes"]) == (layers, size) else f"{listed}")
    embedded = o.scratch.output(".cmf")
    o.tool("cortiq-skill", "attach", base, alone, "--embed", "-o", embedded)
    same = o.logits(o.compile(embedded), TOKENS, "--skill", "bare") == o.logits(program, TOKENS, "--skill", "bare")
    tally.check("bare computes the same elsewhere", None if same else "logits differ")
    key = o.scratch.path("m.cmf.sig")
    with open(o.scratch.path("m.cmf"), "wb") as copy, open(key, "w") as seed:
        copy.write(open(base, "rb").read())
        seed.write("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n")
    os.chmod(key, 0o600)
    tally.check("a signature never replaces its key", harness.why_not_refusal(o.call("cortiq-skill", "sign", o.scratch.path("m.cmf"), "--key", key)))


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


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, (check_codecs, check_low_rank, check_blends, check_masks_without_experts, check_budgets, check_mask_files, check_masked_skills,
                                  check_skill_outputs, check_words)))
