#!/usr/bin/env python3
"""--prompt-numerics=bf16: what an artifact says of it, who refuses it, and, where the machine has tiles of bf16, how far prompts that are worked on at
once lie from prompts that are not."""
import json
import os
import struct
import sys

import harness

MODELS = ("models-gguf/llama-q4_k_m.gguf", "models-gguf/olmo2-q8_0.gguf", "models/qwen3-q4tp.cmf", "models/qwen2-q8_2f.cmf", "models/qwen3_moe-q4tp.cmf")
TOKENS = 200
WHOLE = 32  # tokens from which on tiles of bf16 serve


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
        same, bf16 = (self.compile(model, "--target=amx", *more)[0] for more in ((), ("--prompt-numerics=bf16",)))
        paths = [{row["path"] for row in json.loads(self.tool("cortiq-inspect", "--paths", "--json", file).stdout)} for file in (same, bf16)]
        self.tally.check("by default nothing is bf16", "bf16" in paths[0] and f"paths are {paths[0]}")
        self.tally.check("asked for, products are", paths[1] != {"bf16"} and f"paths are {paths[1]}")
        said = ["--prompt-numerics=bf16" in self.tool("cortiq-inspect", "--provenance", file).stdout for file in (same, bf16)]
        self.tally.check("the artifact says so", said != [False, True] and f"it says {said}")
        _, note = self.compile(model, "--target=x86-64-v3", "--prompt-numerics=bf16")
        self.tally.check("a target without such tiles says so", "changes no product" not in note and f"it says {note}")
        return same

    def refusals(self, compiled):
        out, model = self.scratch.output(".cqa"), os.path.join(self.args.fixtures, MODELS[0])
        for wrong in (["--prompt-numerics=int8"], ["--prompt-numerics=bf16", "--numerics=exact"], ["--prompt-numerics=bf16", "--target=vulkan,amx"], ["--path=bf16"]):
            self.tally.check(f"{' '.join(wrong)} is refused", harness.why_not_refusal(self.tool("cortiq-compile", model, "-o", out, *wrong), out))
        result = self.tool("cortiq-run", compiled, "--tokens", "1,2", "--prompt-numerics=bf16")
        self.tally.check("an artifact refuses it", harness.why_not_refusal(result) or ("--prompt-numerics" not in result.stderr and f"it says {result.stderr}"))

    def distances(self, name):
        """A prompt at once against the same prompt in parts of fewer tokens than tiles serve, held against how far the latter is from `exact`."""
        model = os.path.join(self.args.fixtures, name)
        ids = [(i * 37 + i * i * 11 + 5) % 250 for i in range(TOKENS)]
        ways = {"whole": ["--prompt-numerics=bf16"], "parts": ["--prompt-numerics=bf16", f"--max-batch={WHOLE - 1}"], "same": [], "exact": ["--numerics=exact"]}
        files, results = {}, {}
        for key, options in ways.items():
            files[key] = self.compile(model, "--target=amx", *options)[0]
            results[key] = self.logits(files[key], ids, "--threads", "2")
            if isinstance(results[key], str):
                if "its code needs" in results[key]:
                    self.tally.skip(f"{name}: this machine lacks tiles of bf16", 4)
                else:
                    self.tally.check(f"{name}: {key}", results[key])
                return

        def distance(a, b):
            return (sum((x - y) ** 2 for x, y in zip(results[a], results[b])) / sum(x * x for x in results[b])) ** 0.5
        own, bf16, cut = distance("same", "exact"), distance("whole", "exact"), distance("whole", "parts")
        self.tally.check(f"{name}: small parts are multiplied as by default", results["parts"] != results["same"] and "other logits")
        self.tally.check(f"{name}: bf16 is no further from exact than 8 bits are", not bf16 <= own and f"{bf16} against {own}")
        self.tally.check(f"{name}: a cut moves logits by no more than twice what 8 bits do", not cut <= 2 * own and f"{cut} against {own}")
        again = self.logits(files["whole"], ids, "--threads", "1")
        self.tally.check(f"{name}: one thread and two give the same bits", again != results["whole"] and "other logits")


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-compile", "cortiq-inspect", "cortiq-run")
    harness.need_fixtures(args, "models")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        checker = Checker(tally, args, scratch)
        checker.refusals(checker.says())
        for name in MODELS:
            checker.distances(name)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
