#!/usr/bin/env python3
"""A real model answers questions sensibly: alone by -p and in the interactive loop, with nothing torn in the output."""
import os
import sys

import harness

MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
GREEDY = ["--temp", "0", "-n", "64"]
# Questions that a model this small answers well, each with a word that a sensible answer has to hold.
TURNS = {"Why is the sky blue?": "scatter", "What is photosynthesis?": "light"}


def main():
    args = harness.arguments(__doc__, models=harness.MODELS)
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    model = harness.need_model(args, MODEL)
    tally = harness.Tally()
    run = os.path.join(args.bin, "cortiq-run")
    with harness.Scratch() as scratch:
        artifact = scratch.path("chat.cqa")
        tally.check("compiles", harness.why_not_success(harness.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact])))
        for question, word in TURNS.items():
            one = harness.run([run, artifact, "--chat", "-p", question, *GREEDY])
            tally.check(f"-p {question}", harness.why_not_success(one) or (None if word in one.stdout else f"no '{word}' in {one.stdout!r}"))
            again = harness.run([run, artifact, "--chat", "-p", question, *GREEDY])
            tally.check("greedy answers repeat", None if again.stdout == one.stdout else f"{again.stdout!r} after {one.stdout!r}")
        loop = harness.run([run, artifact, "--chat", *GREEDY], input="\n".join(TURNS) + "\n")
        tally.check("the loop ends well with its input", harness.why_not_success(loop))
        for word in TURNS.values():
            tally.check(f"the loop says '{word}'", None if word in loop.stdout else f"it said {loop.stdout!r}")
        marks = [mark for mark in ("<|im_end|>", "<|im_start|>", "\ufffd") if mark in one.stdout + loop.stdout]
        tally.check("no markup or torn characters", f"printed {marks}" if marks else None)
        story = [run, artifact, "--chat", "-p", "Tell me a story.", "-n", "40", "--temp", "0.9", "--seed", "11"]
        logits = scratch.path("chat.f32")
        tally.check("--logits with --chat is refused", harness.why_not_refusal(
            harness.run([run, artifact, "--chat", "-p", "Hi", "-n", "1", "--logits", logits]), logits))
        tally.check("compile options on an artifact are refused", harness.why_not_refusal(
            harness.run([run, artifact, "-p", "Hi", "-n", "1", "--numerics", "exact"]), None))
        whole = open(artifact, "rb").read()
        tally.check("--logits onto the artifact is refused", harness.why_not_refusal(
            harness.run([run, artifact, "-p", "Hi", "-n", "0", "--logits", artifact]), None))
        tally.check("compiling onto the input is refused", harness.why_not_refusal(
            harness.run([os.path.join(args.bin, "cortiq-compile"), artifact, "-o", artifact]), None))
        tally.check("the input is whole", None if open(artifact, "rb").read() == whole else "it was overwritten")
        first, second = harness.run(story), harness.run(story)
        tally.check("a seed repeats a sampled answer", harness.why_not_success(first) or (None if first.stdout == second.stdout else "it differs"))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
