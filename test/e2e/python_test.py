#!/usr/bin/env python3
"""The Python package: built as a wheel against an installed cortiq, installed into a folder of its own, held against cortiq-run; and
docs/embedding.md's program.
"""
import array
import json
import os
import re
import sys

import harness
from python_package import Package

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROMPT = "Once upon a time"
SLOW = "layers=4,hidden=512,ffn=2048,heads=8,kv-heads=8,vocab=2048:q4_0"
EXACT = 1e-6  # the same arithmetic, printed and read again


def documented_program():
    with open(os.path.join(ROOT, "docs", "embedding.md")) as file:
        return re.search(r"^```python\n(.*?)^```", file.read(), re.S | re.M).group(1)


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-run")
    try:
        import nanobind, numpy, scikit_build_core  # noqa: F401
    except ImportError as missing:
        harness.skip_all(f"{missing.name} is not installed: tools/setup installs it into build/venv")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        package = Package(args, scratch)
        package.build(tally)
        package.keep()
        artifact, logits_file = scratch.path("m.cqa"), scratch.path("logits.f32")
        package.checked(tally, "compile", [os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact])
        # Of random weights, without a tokenizer, a prompt of 2,000 tokens takes it most of a second.
        drawn, slow = scratch.path("slow.gguf"), scratch.path("slow.cqa")
        package.checked(tally, "a slow model", [os.path.join(args.bin, "cortiq-bench"), "--synthetic", SLOW, "-o", drawn])
        package.checked(tally, "compile it", [os.path.join(args.bin, "cortiq-compile"), drawn, "-o", slow, "--numerics=exact", "--max-context=2048"])
        run = [os.path.join(args.bin, "cortiq-run"), artifact, "-p", PROMPT, "--temp", "0", "--threads", "1", "--kv", "f32"]
        want = json.loads(package.checked(tally, "cortiq-run", [*run, "-n", "24", "--json"]).stdout)
        package.checked(tally, "cortiq-run --logits", [*run, "-n", "0", "--logits", logits_file])
        logits = array.array("f")
        with open(logits_file, "rb") as file:
            logits.frombytes(file.read())

        got = json.loads(package.python(tally, "the package", os.path.join(os.path.dirname(__file__), "python_check.py"), artifact, PROMPT, slow))

        def equal(label, a, b):
            tally.check(label, "" if a == b else f"{a!r} instead of {b!r}")

        equal("generate() gives cortiq-run's tokens", got["tokens"], want["tokens"])
        equal("and its text", got["text"], want["text"])
        equal("and says why it ended", got["finish"], want["finish_reason"])
        equal("prompt tokens", got["prompt_tokens"], want["usage"]["prompt_tokens"])
        equal("stream() gives the same tokens", got["streamed"], want["tokens"])
        equal("and the same text", got["streamed_text"], want["text"])
        equal("logits are [rows, vocab]", got["shape"], [len(got["ids"]), got["info"][0]])
        equal("of f32", got["dtype"], "float32")
        worst = max(abs(a - b) for a, b in zip(got["logits"], logits))
        tally.check("and those of --logits", "" if len(got["logits"]) == len(logits) and worst <= EXACT else f"differ by {worst}")
        equal("decode() is encode()'s inverse", got["decoded"], PROMPT)
        equal("keep() leaves one id to run", got["kept"], len(got["ids"]) - 1)
        equal("append() gives a row and holds the id", got["appended"], True)
        equal("a loaded session goes on as the saved one", got["loaded"], True)
        lengths = [sum(value * value for value in vector) for vector in got["embedded"]]
        tally.check("embeddings have the length 1", "" if max(abs(length - 1) for length in lengths) < 1e-5 else str(lengths))
        tally.check("the mean is not the last one, but of one id it is", "" if got["embedded"][0] != got["embedded"][1] and got["embedded"][2] == got["embedded"][3] else "it is otherwise")
        equal("two sessions in threads agree", got["a"], got["b"])
        equal("and begin as one alone does", got["a"][:24], want["tokens"])
        tally.check("Python goes on during a call", "" if got["silent"] < 0.5 else f"it stood still for {got['silent']:.2f} of it")
        tally.check("leaving a stream ends the generation", "" if got["after_leaving"] < len(got["ids"]) + 200 else "it ran to its end")
        equal("an exception passes through a generation", got["raised"], True)
        tally.check("a conversation has ids", "" if got["chat"] else "none")
        equal("a missing file is an Error with a status", got["absent"]["status"], 3)
        equal("so is an id beyond the vocabulary", got["id"]["status"], 1)
        equal("a file that is no session too", got["session"]["status"], 1)
        equal("and an artifact without the signature that is required", got["key"]["status"], 1)
        equal("and a skill that is not there", got["skill"]["status"] in (1, 2), True)

        program = documented_program()
        equal("the documented program has 10 lines", len(program.splitlines()) <= 10, True)
        script = scratch.path("program.py")
        with open(script, "w") as file:
            file.write(program)
        long = json.loads(package.checked(tally, "cortiq-run of 32", [os.path.join(args.bin, "cortiq-run"), artifact, "-p", PROMPT, "--temp", "0",
                                                                      "-n", "32", "--json"]).stdout)
        said = package.python(tally, "the documented program", script, artifact, PROMPT)
        tally.check("the documented program says what cortiq-run says", "" if said.startswith(long["text"] + "\n") else repr(said))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
