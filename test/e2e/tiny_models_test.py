#!/usr/bin/env python3
"""Every operation and codec end to end without fixtures: generated tiny models, compiled and run, against the reference.

For each model of test/cases: the reference backend against a plain Python decoder (float types), the exact arm against the
reference, the fast arm within its bound, greedy tokens; and the same model in both containers against itself.
"""
import array
import json
import math
import os
import random
import re
import sys

import harness

EXACT_BOUND = 2e-4   # relative RMS; f32 sums in another order stay below it, as for the fixtures
FAST_BOUND = 0.05    # relative RMS of 8-bit activations and an f16 cache on small random models
CLEAR_MARGIN = 0.01  # of the logits' RMS: below it a greedy step may go either way
GREEDY = 8
PROMPT = random.Random(7).choices(range(256), k=19)


def load(path):
    values = array.array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


def rms(values):
    return math.sqrt(sum(v * v for v in values) / len(values))


def distance(got, want):
    if len(got) != len(want):
        return math.inf
    return rms([a - b for a, b in zip(got, want)]) / rms(want)


class Program:
    """An artifact or a model with the flags that run it."""

    def __init__(self, args, file, *flags):
        self.command = [os.path.join(args.bin, "cortiq-run"), file, *flags]

    def call(self, *flags):
        result = harness.run([*self.command, *flags], timeout=600)
        why_not = harness.why_not_success(result)
        if why_not:
            raise RuntimeError(why_not)
        return result.stdout

    def forced(self, tokens, scratch):
        out = scratch.output(".f32")
        self.call("--tokens", ",".join(map(str, tokens)), "-n", "0", "--logits", out)
        return load(out)

    def greedy(self, tokens):
        return json.loads(self.call("--tokens", ",".join(map(str, tokens)), "-n", str(GREEDY), "--temp", "0", "--ignore-eos", "--json"))["tokens"]


def compiled(args, model, scratch, numerics, *flags):
    out = scratch.output(".cqa")
    why_not = harness.why_not_success(harness.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", out, "--numerics=" + numerics, *flags]))
    if why_not:
        raise RuntimeError("compile: " + why_not)
    return Program(args, out)


def clear_steps(logits, vocab, prompt=len(PROMPT)):
    """How many greedy steps behind so many tokens, from the first, have a clear winner."""
    scale = rms(logits) * CLEAR_MARGIN
    for step in range(GREEDY):
        at = (prompt - 1 + step) * vocab
        first, second = sorted(logits[at:at + vocab])[-1:-3:-1]
        if first - second < scale:
            return step
    return GREEDY


def check_case(tally, args, case, scratch, plain):
    model = harness.tiny_models().write(case, scratch.folder)
    reference = Program(args, model, "--backend=reference")
    wanted_tokens = reference.greedy(PROMPT)
    forced = PROMPT + wanted_tokens[:-1]
    wanted = reference.forced(forced, scratch)
    vocab = len(wanted) // len(forced)
    notes = []
    if plain.supported(case):
        error = distance(wanted[:len(PROMPT) * vocab], plain.logits(case, PROMPT))
        tally.check(f"{case.name} reference", None if error <= EXACT_BOUND else f"{error:.2e} from the plain decoder")
        notes.append(f"reference {error:.1e}")
    for numerics, bound in (("exact", EXACT_BOUND), ("fast", FAST_BOUND)):
        program = compiled(args, model, scratch, numerics)
        error = distance(program.forced(forced, scratch), wanted)
        tally.check(f"{case.name} {numerics}", None if error <= bound else f"relative RMS {error:.2e}, bound {bound:g}")
        notes.append(f"{numerics} {error:.1e}")
        tokens = program.greedy(PROMPT)
        steps = clear_steps(wanted, vocab) if numerics == "exact" else 0
        same = len(tokens) == GREEDY and tokens[:steps] == wanted_tokens[:steps]
        tally.check(f"{case.name} {numerics} greedy", None if same else f"{tokens}, expected {wanted_tokens} for {steps} steps")
    tally.note(f"{case.name:24} {'  '.join(notes)}")


def check_twins(tally, args, pair, scratch):
    """One model in two containers: equal logits, bit for bit, and equal token ids of a text."""
    models = harness.tiny_models()
    paths = [models.write(case, scratch.folder) for case in pair]
    logits = [compiled(args, path, scratch, "exact").forced(PROMPT, scratch) for path in paths]
    tally.check(f"{pair[0].arch}: same logits from both containers", None if logits[0] == logits[1] else f"relative RMS {distance(*logits):.2e}")
    texts = scratch.path("texts.json")
    with open(texts, "w") as out:
        json.dump(["the heron at the inner re-entrant", "Zürich\n\n  12 34", "<|im_start|>user\nhi<|im_end|>", ""], out)
    ids = [harness.run([os.path.join(args.bin, "cortiq-inspect"), "--tokenize", path, "--input", texts]) for path in paths]
    for case, result in zip(pair, ids):
        tally.check(f"{case.name}: tokenizes", harness.why_not_success(result))
    tally.check(f"{pair[0].arch}: same token ids from both containers", None if ids[0].stdout == ids[1].stdout else "they differ")


def main():
    args = harness.arguments(__doc__, filter={"default": "", "help": "only models whose name matches"})
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    models = harness.tiny_models()
    import plain_forward
    tally = harness.Tally()
    for case in models.CASES:
        if re.search(args.filter, case.name):
            with harness.Scratch() as scratch:
                try:
                    check_case(tally, args, case, scratch, plain_forward)
                except (RuntimeError, OSError, ValueError) as error:
                    tally.check(case.name, str(error))
    for pair in models.twins():
        if all(re.search(args.filter, case.name) for case in pair):
            with harness.Scratch() as scratch:
                try:
                    check_twins(tally, args, pair, scratch)
                except (RuntimeError, OSError, ValueError) as error:
                    tally.check(f"{pair[0].arch} in both containers", str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
