#!/usr/bin/env python3
"""The paths of products with many tokens: the same logits, to the bit, on each of them, what cortiq-inspect --paths
says, and how a path is forced."""
import fnmatch
import json
import os
import sys

import harness

MODELS = ("llama-iqmix", "llama-q4_k_m", "mixtral-q3_k")  # codebooks, K-quants, experts
TARGETS = ("x86-64-v3", "avx512vnni", "avxvnni")
TOKENS = 43  # no multiple of any tile


class Checker:
    def __init__(self, tally, args, scratch):
        self.tally, self.args, self.scratch = tally, args, scratch

    def tool(self, name, *rest):
        return harness.run([os.path.join(self.args.bin, name), *rest])

    def model(self, name):
        return os.path.join(self.args.fixtures, "models-gguf", name + ".gguf")

    def compile(self, name, *options):
        out = self.scratch.output(".cqa")
        result = self.tool("cortiq-compile", self.model(name), "-o", out, *options)
        why_not = harness.why_not_success(result)
        if why_not:
            self.tally.check(f"{name} {' '.join(options)}", why_not)
        return None if why_not else out

    def paths(self, artifact):
        return json.loads(self.tool("cortiq-inspect", "--paths", "--json", artifact).stdout)

    def runs_here(self, artifact):
        return all(entry["runnable"] for entry in json.loads(self.tool("cortiq-inspect", "--json", artifact).stdout)["targets"])

    def logits(self, artifact, ids):
        out = self.scratch.output(".f32")
        result = self.tool("cortiq-run", artifact, "--tokens", ",".join(map(str, ids)), "-n", "1", "--logits", out, "--threads", "2")
        if harness.why_not_success(result):
            return harness.first_line(result)
        with open(out, "rb") as file:
            return file.read()

    def same_bits(self, name, target, numerics):
        label = f"{name} for {target}, {numerics}"
        ids = json.load(open(os.path.join(self.args.fixtures, "models-gguf", name + ".expect.json")))["prompt_ids"]
        ids = (ids * TOKENS)[:TOKENS]
        results = {}
        for path in ("fused", "materialised", "auto"):
            artifact = self.compile(name, "--target", target, "--numerics", numerics, "--path", path)
            if not artifact:
                return
            if not self.runs_here(artifact):
                self.tally.skip(f"{label}: this machine lacks {target}")
                return
            results[path] = self.logits(artifact, ids)
            if path != "auto":
                other = {row["path"] for row in self.paths(artifact)} - {path}
                self.tally.check(f"{label}: all matrices take --path={path}", other and f"some take {other}")
        equal = isinstance(results["fused"], bytes) and results["fused"] == results["materialised"] == results["auto"]
        self.tally.check(f"{label}: every path gives the same bits", not equal and "they differ")

    def choices(self):
        artifact = self.compile("llama-iqmix", "--target=x86-64-v3")
        rows = self.paths(artifact)
        wrong = [r["name"] for r in rows if r["path"] == "materialised" and not (r["from_tokens"] >= 8 and 0 < r["materialised_ps"] < r["fused_ps"] and r["why"])]
        self.tally.check("what is materialised costs less, and says so", wrong and f"{wrong} do not")
        self.tally.check("codebooks are materialised", not any(r["path"] == "materialised" for r in rows) and "none is")
        text = self.tool("cortiq-inspect", "--paths", artifact)
        self.tally.check("--paths has a line a matrix", text.stdout.count("\n") < len(rows) + 2 and "it has fewer")

    def forced(self):
        artifact = self.compile("llama-q4_k_m", "--target=x86-64-v3", "--path=fused,*ffn_down*=materialised")
        wrong = [r["name"] for r in self.paths(artifact) if (r["path"] == "materialised") != fnmatch.fnmatch(r["name"], "*ffn_down*")]
        self.tally.check("a pattern takes the matrices that it names", wrong and f"not {wrong}")
        artifact = self.compile("llama-iqmix", "--target=x86-64-v3", "--path-memory=100")
        wrong = [r["name"] for r in self.paths(artifact) if r["path"] != "fused" or not ("exceeds" in r["why"] or "no other kernel" in r["why"])]
        self.tally.check("where memory is short all are fused, and say why", wrong and f"not {wrong}")
        out = self.scratch.output(".cqa")
        for value in ("quick", "=fused", "*=", "[=fused"):
            result = self.tool("cortiq-compile", self.model("llama-q4_0"), "-o", out, "--path=" + value)
            self.tally.check(f"--path={value} is refused", harness.why_not_refusal(result, out))
        result = self.tool("cortiq-inspect", "--paths", self.model("llama-q4_0"))
        self.tally.check("--paths of a model is refused", harness.why_not_refusal(result))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-compile", "cortiq-inspect", "cortiq-run")
    harness.need_fixtures(args, "models-gguf")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        checker = Checker(tally, args, scratch)
        for name in MODELS:
            for target in TARGETS:
                for numerics in ("fast", "exact"):
                    checker.same_bits(name, target, numerics)
        checker.choices()
        checker.forced()
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
