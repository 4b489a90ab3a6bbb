#!/usr/bin/env python3
"""Heads of as many rows as large vocabularies have, 151,936 and 202,048: a small model with such a head against the reference, to the last row, on every target;
the token that is chosen; the same bits from one thread and several."""
import json
import os
import struct
import sys

import harness

HEADS = ((151936, "q8_0", ".gguf"), (202048, "q4_0", ".gguf"), (202048, "cmf:q4tp", ".cmf"))
SHAPE = "layers=1,hidden=64,ffn=64,heads=2,kv-heads=1,vocab={}:{}"
TARGETS = ("x86-64-v3", "avxvnni", "avx512vnni")
ERRORS = {"exact": 4e-6, "fast": 0.03}  # relative root mean square of logits: sums in another order; activations in 8 bits
IDS = "1,{},77,150000,3"                # the last row among them


class Checker:
    def __init__(self, tally, args, scratch):
        self.tally, self.args, self.scratch = tally, args, scratch

    def run(self, name, *rest):
        result = harness.run([os.path.join(self.args.bin, name), *rest])
        if why_not := harness.why_not_success(result):
            raise RuntimeError(f"{name} {' '.join(rest)}: {why_not}")
        return result.stdout

    def logits(self, file, ids, *options):
        """(bytes of the logits after the last id, the id that is chosen)"""
        out = self.scratch.output(".f32")
        said = self.run("cortiq-run", file, "--tokens", ids, "-n", "1", "--temp", "0", "--ignore-eos", "--json", "--logits", out, *options)
        with open(out, "rb") as data:
            return data.read(), json.loads(said)["tokens"][0]

    def head(self, rows, codec, ending):
        model, ids = self.scratch.output(ending), IDS.format(rows - 1)
        self.run("cortiq-bench", "--synthetic", SHAPE.format(rows, codec), "-o", model)
        want = struct.unpack(f"<{rows}f", self.logits(model, ids, "--backend=reference")[0][-4 * rows:])
        size = sum(x * x for x in want)
        for numerics, bound in ERRORS.items():
            artifact = self.scratch.output(".cqa")
            self.run("cortiq-compile", model, "-o", artifact, "--numerics", numerics, "--target", ",".join(TARGETS))
            held = {entry["name"]: entry["runnable"] for entry in json.loads(self.run("cortiq-inspect", "--json", artifact))["targets"]}
            self.tally.check(f"{rows} rows of {codec}, {numerics}: its targets", None if sorted(held) == sorted(TARGETS) else str(held))
            for target in TARGETS:
                label = f"{rows} rows of {codec}, {numerics}, {target}"
                if not held[target]:
                    self.tally.skip(f"{label}: this machine lacks {target}")
                    continue
                data, chosen = self.logits(artifact, ids, "--target", target, "--threads", "1")
                got = struct.unpack(f"<{rows}f", data[-4 * rows:])
                error = (sum((a - b) * (a - b) for a, b in zip(got, want)) / size) ** 0.5
                self.tally.check(label, not error < bound and f"relative RMS {error:.2e}")
                tail = max(abs(a - b) for a, b in zip(got[-16:], want[-16:])) / (size / rows) ** 0.5
                self.tally.check(f"{label}: the last rows", not tail < 5 * bound and f"{tail:.2e} of a usual logit away")
                self.tally.check(f"{label}: the largest", chosen != got.index(max(got)) and f"{chosen} was chosen, {got.index(max(got))} is")
                self.tally.check(f"{label}: 3 threads", self.logits(artifact, ids, "--target", target, "--threads", "3") != (data, chosen) and "other bits")


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-inspect", "cortiq-run")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        checker = Checker(tally, args, scratch)
        for head in HEADS:
            try:
                checker.head(*head)
            except RuntimeError as why:
                tally.check(str(head), str(why))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
