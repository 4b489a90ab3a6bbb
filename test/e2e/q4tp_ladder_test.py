#!/usr/bin/env python3
"""--q4tp-ladder: a model's scales as the reference's vector kernels compute them, in the artifact, in the interpreter, and on the way from cortiq-run to the
compiler."""
import os
import struct
import sys

import harness

IDS = "3,17,29,101,7"
WITHOUT = "qwen3-q4.cmf"  # has no q4tp


class Checker:
    def __init__(self, tally, args, scratch):
        self.tally, self.args, self.scratch = tally, args, scratch
        self.model = os.path.join(args.fixtures, "models", "qwen3-q4tp.cmf")
        self.cache = scratch.path("cache")

    def run(self, name, *rest):
        return harness.run([os.path.join(self.args.bin, name), *rest])

    def compile(self, *options):
        out = self.scratch.output(".cqa")
        why_not = harness.why_not_success(self.run("cortiq-compile", self.model, "-o", out, "--numerics=exact", *options))
        self.tally.check(f"compile {' '.join(options)}", why_not)
        return out

    def logits(self, file, *options):
        out = self.scratch.output(".f32")
        why_not = harness.why_not_success(self.run("cortiq-run", file, "--tokens", IDS, "-n", "1", "--logits", out, "--threads", "1", *options))
        self.tally.check(f"run {os.path.basename(file)} {' '.join(options)}", why_not)
        if why_not:
            return ()
        with open(out, "rb") as file:
            data = file.read()
        return struct.unpack(f"<{len(data) // 4}f", data)

    def ladders(self):
        exact, vector = self.compile(), self.compile("--q4tp-ladder=vector")
        said = ["--q4tp-ladder=vector" in self.run("cortiq-inspect", "--provenance", file).stdout for file in (exact, vector)]
        self.tally.check("the artifact says which ladder it has", said != [False, True] and f"it says {said}")
        by_default, with_vector = self.logits(exact), self.logits(vector)
        size = max(map(abs, by_default), default=0)
        far = max((abs(a - b) for a, b in zip(by_default, with_vector)), default=0)
        self.tally.check("the two differ, in the last digits", not 0 < far <= 1e-3 * size and f"by {far} of {size}")
        # Each lies nearer to the interpreter with its own ladder: sums in another order are all that remains.
        reference = self.logits(self.model, "--backend=reference", "--q4tp-ladder=vector")
        near = max((abs(a - b) for a, b in zip(reference, with_vector)), default=size)
        self.tally.check("the interpreter has the same ladder", not near <= 4e-6 * size and f"{near} of {size} away")
        cached = ["--cache", self.cache, "--numerics=exact"]
        self.tally.check("cortiq-run passes it on", self.logits(self.model, *cached, "--q4tp-ladder=vector") != with_vector and "other logits than the artifact's")
        self.tally.check("and keeps the ladders apart in its cache", self.logits(self.model, *cached) != by_default and "other logits than the artifact's")

    def refusals(self):
        out, compiled = self.scratch.output(".cqa"), self.compile()
        self.tally.check("--q4tp-ladder=quick is refused", harness.why_not_refusal(self.run("cortiq-compile", self.model, "-o", out, "--q4tp-ladder=quick"), out))
        self.tally.check("--gemv refuses it", harness.why_not_refusal(self.run(
            "cortiq-compile", "--gemv=cmf:q4tp", "--shape=16x32", "--weights", self.model, "-o", out, "--q4tp-ladder=vector"), out))
        result = self.run("cortiq-run", compiled, "--tokens", IDS, "--q4tp-ladder=vector")
        self.tally.check("an artifact refuses it", harness.why_not_refusal(result) or ("--q4tp-ladder" not in result.stderr and f"it says {result.stderr}"))
        result = self.run("cortiq-compile", os.path.join(self.args.fixtures, "models", WITHOUT), "-o", out, "--q4tp-ladder=vector")
        self.tally.check("a model without q4tp says so", harness.why_not_success(result) or ("no tensor is q4tp" not in result.stderr and f"it says {result.stderr}"))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-compile", "cortiq-inspect", "cortiq-run")
    harness.need_fixtures(args, "models")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        checker = Checker(tally, args, scratch)
        checker.ladders()
        checker.refusals()
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
