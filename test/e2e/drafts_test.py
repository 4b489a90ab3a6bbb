#!/usr/bin/env python3
"""Models that guess tokens ahead (test/cases/tiny_drafts.py): with and without guesses the tokens are the same.

For each model, both numerics, several prompts, greedy and sampled, one thread and two. Where a model's guesses are right or
wrong by construction, the counts must say so; and its logits must be those of the reference, which makes no guesses. A skill
replaces tensors of the block as it does all others.
"""
import json
import os
import random
import re
import sys

import harness

TOKENS = 60
PROMPTS = [[random.Random(seed).randrange(256) for _ in range(1 + 9 * seed)] for seed in range(3)]


def generate(args, file, prompt, how, *flags):
    result = harness.run([os.path.join(args.bin, "cortiq-run"), file, "--tokens", ",".join(map(str, prompt)), "-n", str(TOKENS),
                          "--ignore-eos", "--json", *how, *flags], timeout=300)
    why_not = harness.why_not_success(result)
    if why_not:
        raise RuntimeError(why_not)
    return json.loads(result.stdout)


def wrong_counts(case, counts):
    if counts["drafts"] == 0:
        return "no draft was made"
    if case.guesses == "right" and counts["accepted"] != counts["drafts"]:
        return f"{counts['accepted']} of {counts['drafts']} right guesses were accepted"
    if case.guesses == "wrong" and counts["accepted"] != 0:
        return f"{counts['accepted']} wrong guesses were accepted"
    return None


def check_case(tally, args, case, drafts, scratch):
    model = drafts.write(case, scratch.folder)
    for numerics in ("exact", "fast"):
        artifact = scratch.output(".cqa")
        why_not = harness.why_not_success(harness.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact, "--numerics=" + numerics]))
        if why_not:
            raise RuntimeError("compile: " + why_not)
        for number, prompt in enumerate(PROMPTS):
            for how in (["--temp", "0"], ["--temp", "0.8", "--seed", str(number)]):
                how += ["--threads", str(1 + number % 2)]
                without = generate(args, artifact, prompt, how, "--speculate", "off")
                for mode in ("on", "auto"):
                    result = generate(args, artifact, prompt, how, "--speculate", mode)
                    name = f"{case.name} {numerics} prompt {number} {' '.join(how)} {mode}"
                    tally.check(name, None if result["tokens"] == without["tokens"] else "other tokens than without guesses")
                    if mode == "on":
                        tally.check(name + " counts", wrong_counts(case, result["speculation"]))
        greedy = generate(args, artifact, PROMPTS[1], ["--temp", "0"])["tokens"]
        if numerics == "exact" and case.guesses != "random":  # clear winners at every step
            reference = generate(args, model, PROMPTS[1], ["--temp", "0"], "--backend=reference")["tokens"]
            tally.check(f"{case.name} reference", None if reference == greedy else f"{greedy}, the reference has {reference}")


def check_skills(tally, args, drafts, scratch):
    """Another model's tensors as a skill, under an id that looks like a part of a tensor's name."""
    skill_id, how = "layers.7.mtp", ["--temp", "0", "--threads", "1"]
    named = {case.name: case for case in drafts.CASES}
    base = drafts.write(named["mtp-qwen3-f16-right.cmf"], scratch.folder)
    for name in ("mtp-qwen3-f16-wrong.cmf", "mtp-qwen3-q4tp-random.cmf"):
        other = drafts.write(named[name], scratch.folder)
        skill, both, artifact, own = (scratch.output(suffix) for suffix in (".cmf", ".cmf", ".cqa", ".cqa"))
        for command in (["cortiq-skill", "extract", other, "--id", skill_id, "--base", base, "-o", skill],
                        ["cortiq-skill", "attach", base, skill, "--embed", "-o", both],
                        ["cortiq-compile", both, "-o", artifact, "--numerics=exact"],
                        ["cortiq-compile", other, "-o", own, "--numerics=exact"]):
            why_not = harness.why_not_success(harness.run([os.path.join(args.bin, command[0]), *command[1:]]))
            if why_not:
                raise RuntimeError(why_not)
        for speculate in ("off", "on"):
            with_skill = generate(args, artifact, PROMPTS[1], how, "--skill", skill_id, "--speculate", speculate)
            alone = generate(args, own, PROMPTS[1], how, "--speculate", speculate)
            label = f"skill of {name}, guesses {speculate}"
            tally.check(label, None if with_skill["tokens"] == alone["tokens"] else "other tokens than the model it was made of")
            same = with_skill["speculation"] == alone["speculation"]
            tally.check(label + ": counts", None if same else f"{with_skill['speculation']}, by itself {alone['speculation']}")


def main():
    args = harness.arguments(__doc__, filter={"default": "", "help": "only models whose name matches"})
    harness.need_tools(args, "cortiq-compile", "cortiq-run", "cortiq-skill")
    harness.tiny_models()  # puts test/cases on the path
    import tiny_drafts
    tally = harness.Tally()
    for case in tiny_drafts.CASES:
        if re.search(args.filter, case.name):
            with harness.Scratch() as scratch:
                try:
                    check_case(tally, args, case, tiny_drafts, scratch)
                except (RuntimeError, OSError, ValueError) as error:
                    tally.check(case.name, str(error))
    if re.search(args.filter, "skills"):
        with harness.Scratch() as scratch:
            try:
                check_skills(tally, args, tiny_drafts, scratch)
            except RuntimeError as error:
                tally.check("skills", str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
