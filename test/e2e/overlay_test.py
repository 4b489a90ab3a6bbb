#!/usr/bin/env python3
"""Skills, masks and routing from the command line: what cortiq-skill writes and refuses, --skill auto against recorded choices, masks
at compile time against masks at run time, and a skill changed in the middle of a chat against a fresh process.
"""
import array
import json
import os
import re
import shutil
import sys

import harness

FIXED_TASK_ERROR = 2e-5  # relative RMS: the same f32 sums, some terms of which are left out instead of being zero
ROUTING_ERROR = 2e-3     # of E, recorded with four digits by an engine with 8-bit activations


def rms(values):
    return (sum(v * v for v in values) / len(values)) ** 0.5


class Overlay:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.models = harness.need_fixtures(args, "models")

    def model(self, name):
        return os.path.join(self.models, name)

    def call(self, name, *flags, **options):
        return harness.run([os.path.join(self.args.bin, name), *flags], timeout=600, **options)

    def tool(self, name, *flags, **options):
        result = self.call(name, *flags, **options)
        why_not = harness.why_not_success(result)
        if why_not:
            raise RuntimeError(f"{name} {' '.join(flags)}: {why_not}")
        return result

    def compile(self, model, *flags, numerics="exact"):
        out = self.scratch.output(".cqa")
        self.tool("cortiq-compile", model, "-o", out, "--numerics=" + numerics, *flags)
        return out

    def logits(self, program, tokens, *flags):
        out = self.scratch.output(".f32")
        self.tool("cortiq-run", program, "--tokens", ",".join(map(str, tokens)), "-n", "0", "--logits", out, *flags)
        values = array.array("f")
        with open(out, "rb") as file:
            values.frombytes(file.read())
        return values


def check_skill_files(tally, o):
    """attach, extract, detach and list; what is no base or no skill is refused."""
    base, skill, out = o.model("alone-base.cmf"), o.model("alone-skill.cmf"), o.scratch.output(".cmf")
    tally.check("a bare skill file does not run", harness.why_not_refusal(o.call("cortiq-compile", skill, "-o", o.scratch.output(".cqa"))))
    tally.check("another base is refused", harness.why_not_refusal(o.call("cortiq-skill", "attach", o.model("qwen3-q4t.cmf"), skill, "-o", out), out))
    tally.check("a model is no skill", harness.why_not_refusal(o.call("cortiq-skill", "attach", base, base, "-o", out), out))
    o.tool("cortiq-skill", "attach", base, skill, "-o", out)
    again = o.scratch.output(".cmf")
    o.tool("cortiq-skill", "extract", out, "--id", "story", "--base", base, "-o", again)
    listed = json.loads(o.tool("cortiq-skill", "list", again, "--json").stdout)
    original = json.loads(o.tool("cortiq-skill", "list", skill, "--json").stdout)
    tally.check("an extracted skill names its base", None if listed["skills"][0]["base"] == original["skills"][0]["base"] else f"{listed}")
    second = o.scratch.output(".cmf")
    o.tool("cortiq-skill", "attach", base, again, "-o", second)
    tally.check("attach after extract gives the same file", None if open(out, "rb").read() == open(second, "rb").read() else "they differ")
    # Beside the base's tensors instead of in their place: the same numbers, chosen at run time.
    embedded, tokens = o.scratch.output(".cmf"), [5, 17, 99, 300, 12]
    o.tool("cortiq-skill", "attach", base, skill, "--embed", "-o", embedded)
    program = o.compile(embedded)
    for label, flags, model in (("the skill", ["--skill", "story"], out), ("no skill", [], base)):
        same = o.logits(program, tokens, *flags) == o.logits(o.compile(model), tokens)
        tally.check(f"embedded, {label}: as attached", None if same else "logits differ")
    # A model without records, fine-tuned from the base, becomes a skill; two skills stand beside one base.
    tuned, second_skill, both = (o.scratch.output(".cmf") for _ in range(3))
    o.tool("cortiq-skill", "detach", out, "--id", "story", "-o", tuned)
    o.tool("cortiq-skill", "extract", tuned, "--id", "again", "--base", base, "-o", second_skill)
    o.tool("cortiq-skill", "attach", base, skill, second_skill, "--embed", "-o", both)
    ids = [entry["id"] for entry in json.loads(o.tool("cortiq-skill", "list", both, "--json").stdout)["skills"]]
    tally.check("two skills on one base", None if ids == ["story", "again"] else f"{ids}")
    program_both = o.compile(both)
    tally.check("a skill made of a fine-tuned model", None if o.logits(program_both, tokens, "--skill", "again") == o.logits(program, tokens, "--skill", "story") else "logits differ")
    tally.check("two skills in place of the base's tensors", harness.why_not_refusal(o.call("cortiq-skill", "attach", base, skill, second_skill, "-o", out + "x"), out + "x"))
    tally.check("one skill twice", harness.why_not_refusal(o.call("cortiq-skill", "attach", base, skill, again, "--embed", "-o", out + "x"), out + "x"))
    tally.check("nothing is a skill of its base", harness.why_not_refusal(o.call("cortiq-skill", "extract", base, "--id", "none", "--base", base, "-o", out + "x"), out + "x"))
    detached = o.scratch.output(".cmf")
    o.tool("cortiq-skill", "detach", embedded, "--id", "story", "-o", detached)
    tally.check("detached: no skill", None if not json.loads(o.tool("cortiq-skill", "list", detached, "--json").stdout)["skills"] else "there is one")
    tally.check("detached: runs as the base", None if o.logits(o.compile(detached), tokens) == o.logits(o.compile(base), tokens) else "logits differ")
    tally.check("an unknown skill is refused", harness.why_not_refusal(o.call("cortiq-skill", "detach", embedded, "--id", "poet", "-o", out + "x"), out + "x"))
    tally.check("never onto the input", harness.why_not_refusal(o.call("cortiq-skill", "detach", embedded, "--id", "story", "-o", embedded)))


def check_signatures(tally, o):
    spec = json.load(open(o.model("signed.expect.json")))
    key = spec["public_key"]
    result = o.call("cortiq-skill", "verify", o.model("signed.cmf"), "--key", key)
    tally.check("a signed file", harness.why_not_success(result))
    tally.check("a changed file", harness.why_not_refusal(o.call("cortiq-skill", "verify", o.model("signed-tampered.cmf"))))
    tally.check("another key", harness.why_not_refusal(o.call("cortiq-skill", "verify", o.model("signed.cmf"), "--key", "0" * 64)))
    tally.check("no signature where one is asked for", harness.why_not_refusal(o.call("cortiq-skill", "verify", o.model("alone-base.cmf"), "--key", key)))
    mine, seed = o.scratch.path("mine.cmf"), o.scratch.path("seed")
    shutil.copy(o.model("alone-base.cmf"), mine)
    with open(seed, "w") as file:
        file.write("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n")  # RFC 8032, test 1
    os.chmod(seed, 0o600)
    signer = o.tool("cortiq-skill", "sign", mine, "--key", seed).stdout
    expected = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    tally.check("the public key of RFC 8032's seed", None if expected in signer else signer)
    tally.check("what was signed verifies", harness.why_not_success(o.call("cortiq-skill", "verify", mine, "--key", expected)))
    tally.check("a key file that holds none", harness.why_not_refusal(o.call("cortiq-skill", "sign", mine, "--key", mine)))


def check_routing(tally, o):
    """The reference engine's choice and E for every recorded prompt, interpreted and compiled."""
    spec = json.load(open(o.model("skills.expect.json")))
    program = o.compile(o.model("skills.cmf"))
    # The engine splits digits behind a space otherwise than the file's own rules.
    spec["routing"] = [entry for entry in spec["routing"] if not re.search(r" \d", entry["prompt"])]
    for file, flags, prompts in ((program, [], spec["routing"]), (o.model("skills.cmf"), ["--backend=reference"], spec["routing"][:3])):
        for entry in prompts:
            out = json.loads(o.tool("cortiq-run", file, "-p", entry["prompt"], "-n", "1", "--temp", "0", "--json", "--skill", "auto", *flags).stdout)
            recorded = {m[1]: float(m[2]) for line in entry["route"] if (m := re.match(r"\s*(\w+)\s+E = ([\d.]+)$", line))}
            found = {s["id"]: s["e"] for s in out["overlay"]["scores"]}
            chosen = [s["id"] for s in out["overlay"]["skills"]]
            routed = re.match(r"routed to skill: (\w+)$", entry["run"][0])
            worst = max(abs(found[k] - e) for k, e in recorded.items()) if found.keys() == recorded.keys() else 9
            near = any(abs(e - 0.3) < ROUTING_ERROR for e in recorded.values())
            ok = worst < ROUTING_ERROR * 10 and (near or chosen == ([routed[1]] if routed else []))
            tally.check(f"routing {entry['prompt'][:30]!r}", None if ok else f"{found} -> {chosen}, recorded {recorded} {entry['run']}")


def check_fixed_tasks(tally, o):
    """A model compiled for one task computes what the model computes under that task's mask."""
    for name in ("masks-ffn", "masks-heads", "moe-specialist"):
        spec = json.load(open(o.model(name + ".expect.json")))
        cases = [c for c in spec["cases"] if c["cli_flags"] and c["cli_flags"][1] != "none"]
        model = o.model(cases[0]["file"])
        program = o.compile(model)
        for case in cases:
            task = case["cli_flags"][1]
            fixed = o.compile(model, "--task", task)
            a, b = (o.logits(p, case["prompt_ids"], *f) for p, f in ((program, ["--task", task]), (fixed, [])))
            error = rms([x - y for x, y in zip(a, b)]) / rms(a)
            tally.check(f"{name}, task {task}: compiled as run", None if error < FIXED_TASK_ERROR else f"relative RMS {error:.2e}")
            smaller = os.path.getsize(fixed) < os.path.getsize(program)
            if task in ("deep", "heads", "narrow", "skiplayer"):
                tally.check(f"{name}, task {task}: less to read", None if smaller else "the artifact is not smaller")
        tally.check(f"{name}: a task that is none", harness.why_not_refusal(o.call("cortiq-compile", model, "-o", o.scratch.output(".cqa"), "--task", "poet")))
        tally.check(f"{name}: another task than it was compiled for", harness.why_not_refusal(o.call("cortiq-run", fixed, "--tokens", "1", "-n", "1", "--task", "none")))


def check_chat(tally, o):
    """/skill between turns: the second answer is that of a process that had the skill from the start and was given the same first answer."""
    program = o.compile(o.model("skills.cmf"))
    flags = ["--chat", "-n", "12", "--temp", "0", "--ignore-eos", "--json"]

    def turns(text, *more):
        return [json.loads(line) for line in o.tool("cortiq-run", program, *flags, *more, input=text).stdout.splitlines()]

    plain, story = turns("one\ntwo\n"), turns("one\ntwo\n", "--skill", "story")
    switched = turns("one\n/skill story\ntwo\n")
    back = turns("/skill code\n/skill story\none\ntwo\n")
    tally.check("before the switch", None if switched[0]["tokens"] == plain[0]["tokens"] else "another first answer")
    tally.check("switched from the start", None if [t["tokens"] for t in back] == [t["tokens"] for t in story] else "another answer")
    tally.check("the skill changes the answer", None if switched[1]["tokens"] != plain[1]["tokens"] else "the same second answer")
    slip = o.tool("cortiq-run", program, *flags, input="/skill poet\none\n")
    tally.check("an unknown skill does not end the chat", None if "no skill 'poet'" in slip.stderr and len(slip.stdout.splitlines()) == 1 else slip.stderr)
    typo = o.tool("cortiq-run", program, *flags, input="/skil story\n /skil story\n/usr/bin\n")
    tally.check("a misspelt command is told, not sent to the model", None if typo.stderr.count("no command /skil;") == 1 and "/skill ID" in typo.stderr and
                len(typo.stdout.splitlines()) == 2 else f"{typo.stdout!r} {typo.stderr!r}")


def run_checks(description, checks, kind=Overlay):
    """The whole of a script of checks that take a tally and an Overlay; its exit status."""
    args = harness.arguments(description)
    harness.need_fixtures(args, "models")
    harness.need_tools(args, "cortiq-compile", "cortiq-run", "cortiq-skill")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        overlay = kind(args, scratch)
        for check in checks:
            try:
                check(tally, overlay)
            except RuntimeError as error:
                tally.check(check.__name__, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(run_checks(__doc__, (check_skill_files, check_signatures, check_routing, check_fixed_tasks, check_chat)))
