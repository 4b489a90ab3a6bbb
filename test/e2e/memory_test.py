#!/usr/bin/env python3
"""--memory: models of experts under the smallest budget that works give the same logits and tokens as without one, prefill and
decode; what is too little or no size is refused. Without fixtures, a model of bench/make_moe_gguf.py is used.
"""
import json
import os
import re
import sys

import harness

FIXTURES = ["models/qwen2_moe-q8.cmf", "models/qwen3_moe-q2tp.cmf", "models/qwen3_moe-q8_2f.cmf", "models/qwen3_moe16-q4t.cmf",
            "models-gguf/qwen3moe-q4_k.gguf"]
MAKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "make_moe_gguf.py")
PROMPT = "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20"


class Memory:
    def __init__(self, args, scratch, tally):
        self.args, self.scratch, self.tally = args, scratch, tally

    def call(self, name, *flags):
        return harness.run([os.path.join(self.args.bin, name), *flags])

    def generate(self, artifact, *flags):
        logits = self.scratch.output(".f32")
        result = self.call("cortiq-run", artifact, "--tokens", PROMPT, "-n", "24", "--ignore-eos", "--json", "--stats", "--logits", logits,
                           "--max-context", "64", *flags)
        why_not = harness.why_not_success(result)
        if why_not:
            raise RuntimeError(why_not)
        with open(logits, "rb") as file:
            return file.read(), json.loads(result.stdout)["tokens"], result.stderr

    def check_model(self, model, numerics):
        label = f"{os.path.basename(model)} {numerics}"
        artifact = self.scratch.output(".cqa")
        why_not = harness.why_not_success(self.call("cortiq-compile", model, "-o", artifact, "--numerics=" + numerics))
        if why_not:
            self.tally.check(label, why_not)
            return
        refused = self.call("cortiq-run", artifact, "--tokens", PROMPT, "-n", "1", "--max-context", "64", "--memory", "4K")
        self.tally.check(f"{label}: 4K is refused", harness.why_not_refusal(refused))
        least = re.search(r"the least that works is --memory (\d+)M", refused.stderr)
        self.tally.check(f"{label}: the least is named", None if least else refused.stderr)
        if not least:
            return
        want_logits, want_tokens, stats = self.generate(artifact)
        self.tally.check(f"{label}: no statistics without a budget", stats if "experts: room" in stats else None)
        for memory, threads in ((least[1] + "M", "1"), (least[1] + "M", "3"), ("1G", "2")):
            where = f"{label}: --memory {memory}, {threads} threads"
            try:
                logits, tokens, stats = self.generate(artifact, "--memory", memory, "--threads", threads)
            except RuntimeError as why:
                self.tally.check(where, str(why))
                continue
            self.tally.check(where + ": logits", None if logits == want_logits else "they differ")
            self.tally.check(where + ": tokens", None if tokens == want_tokens else f"{tokens}, not {want_tokens}")
            self.tally.check(where + ": statistics", None if re.search(r"% of \d+ uses in memory", stats) else stats)
        self.tally.note(label)
        return artifact

    def check_command_lines(self, artifact):
        for size in ("0", "x", "1Q", "-1", "1.5G", "99999999999T", ""):
            for tool in ("cortiq-run", "cortiq-bench"):
                flags = ["--tokens", "1"] if tool == "cortiq-run" else []
                result = self.call(tool, artifact, *flags, "--memory", size)
                self.tally.check(f"{tool} --memory {size!r}", harness.why_not_refusal(result))
        result = self.call("cortiq-bench", artifact, "--memory", "1G", "--prefill", "4", "--decode", "4", "--repeat", "1")
        self.tally.check("cortiq-bench --memory 1G", harness.why_not_success(result) or
                         (None if "experts: room" in result.stderr else result.stderr))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-run", "cortiq-compile", "cortiq-bench")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        memory = Memory(args, scratch, tally)
        # Experts of several megabytes: budgets far below the model's size mean something.
        made = scratch.path("made.gguf")
        why_not = harness.why_not_success(harness.run(
            [sys.executable, MAKER, made, "--layers", "3", "--experts", "16", "--hidden", "512", "--ffn", "512", "--vocab", "512"]))
        tally.check("make_moe_gguf.py", why_not)
        artifact = None if why_not else memory.check_model(made, "fast")
        if artifact:
            memory.check_command_lines(artifact)
        for name in FIXTURES:
            model = os.path.join(args.fixtures, name)
            if not args.fixtures or not os.path.exists(model):
                tally.skip(f"CORTIQ_FIXTURES has no {name}")
                continue
            for numerics in ("exact", "fast"):
                memory.check_model(model, numerics)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
