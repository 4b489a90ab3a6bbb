#!/usr/bin/env python3
"""--prompt-numerics=half: what an artifact says of it, who refuses it, and, where the machine has tiles of bf16, that a prompt gives the same bits however
it is cut, that answers to several at once are those of each alone, and that logits are no further from `exact` than those of 8 bits."""
import json
import os
import struct
import sys

import harness

MODELS = ("models-gguf/llama-q4_k_m.gguf", "models-gguf/olmo2-q8_0.gguf", "models/qwen3-q4tp.cmf", "models/qwen2-q8_2f.cmf", "models/qwen3_moe-q4tp.cmf")
TOKENS = 200
CUTS = (1, 7, 64)


class Checker:
    def __init__(self, tally, args, scratch):
        self.tally, self.args, self.scratch = tally, args, scratch

    def tool(self, name, *rest):
        return harness.run([os.path.join(self.args.bin, name), *rest])

    def compile(self, model, *options):
        out = self.scratch.output(".cqa")
        result = self.tool("cortiq-compile", model, "-o", out, *options)
        why_not = harness.why_not_success(result)
        if why_not:
            self.tally.check(f"compile {os.path.basename(model)} {' '.join(options)}", why_not)
        return out, result.stderr

    def logits(self, artifact, ids, *options):
        out = self.scratch.output(".f32")
        result = self.tool("cortiq-run", artifact, "--tokens", ",".join(map(str, ids)), "-n", "1", "--logits", out, *options)
        if harness.why_not_success(result):
            return harness.first_line(result)
        with open(out, "rb") as file:
            data = file.read()
        return struct.unpack(f"<{len(data) // 4}f", data)

    def says(self):
        model = os.path.join(self.args.fixtures, MODELS[0])
        same, half = (self.compile(model, "--target=amx", f"--prompt-numerics={word}")[0] for word in ("same", "half"))
        paths = [{row["path"] for row in json.loads(self.tool("cortiq-inspect", "--paths", "--json", file).stdout)} for file in (same, half)]
        self.tally.check("with same nothing is bf16", "bf16" in paths[0] and f"paths are {paths[0]}")
        self.tally.check("with half products are", paths[1] != {"bf16"} and f"paths are {paths[1]}")
        said = ["--prompt-numerics=half" in self.tool("cortiq-inspect", "--provenance", file).stdout for file in (same, half)]
        self.tally.check("the artifact says so", said != [False, True] and f"it says {said}")
        _, note = self.compile(model, "--target=x86-64-v3", "--prompt-numerics=half")
        self.tally.check("a target without such units says so", "changes no product" not in note and f"it says {note}")
        synthetic = self.scratch.output(".cqa")
        made = self.tool("cortiq-bench", "--synthetic", "tiny:q8_0", "--target", "amx", "--prompt-numerics", "half", "-o", synthetic)
        self.tally.check("a synthetic model takes it", harness.why_not_success(made)
                         or ("--prompt-numerics=half" not in self.tool("cortiq-inspect", "--provenance", synthetic).stdout and "it does not say so"))
        default, _ = self.compile(model, "--target=amx")
        self.tally.check("it is what amx gets", "--prompt-numerics=half" not in self.tool("cortiq-inspect", "--provenance", default).stdout and "it does not say so")
        return same

    def refusals(self, compiled):
        out, model = self.scratch.output(".cqa"), os.path.join(self.args.fixtures, MODELS[0])
        for wrong in (["--prompt-numerics=bf16"], ["--prompt-numerics="], ["--prompt-numerics=half", "--numerics=exact"], ["--path=bf16"]):
            self.tally.check(f"{' '.join(wrong)} is refused", harness.why_not_refusal(self.tool("cortiq-compile", model, "-o", out, *wrong), out))
        result = self.tool("cortiq-run", compiled, "--tokens", "1,2", "--prompt-numerics=half")
        self.tally.check("an artifact refuses it", harness.why_not_refusal(result) or ("--prompt-numerics" not in result.stderr and f"it says {result.stderr}"))

    def has_tiles(self):
        """Whether this machine runs what is compiled for tiles of bf16."""
        result = self.logits(self.compile(os.path.join(self.args.fixtures, MODELS[0]), "--target=amx", "--prompt-numerics=half")[0], [1, 2])
        if isinstance(result, str) and "its code needs" in result:
            return False
        self.tally.check("an artifact for amx runs", result if isinstance(result, str) else "")
        return True

    def bits(self, name):
        """A prompt at once against the same in pieces, on one thread and two, and how far it is from `exact`."""
        model = os.path.join(self.args.fixtures, name)
        ids = [(i * 37 + i * i * 11 + 5) % 250 for i in range(TOKENS)]
        ways = {"same": ["--prompt-numerics=same"], "exact": ["--numerics=exact"], "half": ["--prompt-numerics=half"]}
        ways.update({cut: ["--prompt-numerics=half", f"--max-batch={cut}"] for cut in CUTS})
        results = {}
        for key, options in ways.items():
            results[key] = self.logits(self.compile(model, "--target=amx", *options)[0], ids, "--threads", "1" if key == CUTS[0] else "2")
            if isinstance(results[key], str):
                self.tally.check(f"{name}: {key}", results[key])
                return

        def distance(a, b):
            return (sum((x - y) ** 2 for x, y in zip(results[a], results[b])) / sum(x * x for x in results[b])) ** 0.5
        for cut in CUTS:
            self.tally.check(f"{name}: pieces of {cut} give the bits of the whole", results[cut] != results["half"] and "other logits")
        self.tally.check(f"{name}: prompts are not multiplied in 8 bits", results["half"] == results["same"] and "the same logits")
        own, half = distance("same", "exact"), distance("half", "exact")
        self.tally.check(f"{name}: it is no further from exact than 8 bits are", not half <= own and f"{half} against {own}")

    def answers(self, name):
        """Answers to several at once, in steps that hold pieces of other prompts, against those of a session alone; the bench compares every bit."""
        artifact, _ = self.compile(os.path.join(self.args.fixtures, name), "--target=amx", "--prompt-numerics=half")
        result = self.tool("cortiq-bench", artifact, "--sequences", "1,3,8", "--prefill", "90", "--decode", "12", "--repeat", "1", "--threads", "2")
        self.tally.check(f"{name}: answers to several are those of each alone", harness.why_not_success(result))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-inspect", "cortiq-run")
    harness.need_fixtures(args, "models")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        checker = Checker(tally, args, scratch)
        checker.refusals(checker.says())
        if checker.has_tiles():
            for name in MODELS:
                checker.bits(name)
                checker.answers(name)
        else:
            tally.skip("this machine lacks tiles of bf16: bits of prompts and answers are not compared", 2 * len(MODELS))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
