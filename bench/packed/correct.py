"""Correctness: fixtures' greedy tokens as recorded, prompts in pieces with the bits of the whole, the shaders' unit tests."""
import hashlib
import json
import os
import re
import tempfile

from parts import Part, Step

LEFT = re.compile(r"in between: (\d+)")
NOT_HERE = "its code needs"  # what an artifact says whose target the machine lacks
# Activations of 8 and 16 bits may turn decisions that were as close as this; of experts a turned choice moves logits by any amount.
CLOSE = 0.5


def tokens_of(case, count):
    return ["--tokens", ",".join(map(str, case["prompt"])), "-n", str(count), "--temp", "0", "--ignore-eos", "--json"]


def judged(case, tokens):
    """Outcome and detail of generated tokens against the recorded ones."""
    wanted = case["greedy"]
    if tokens == wanted:
        return "ok", ""
    at = next((i for i, (got, want) in enumerate(zip(tokens, wanted)) if got != want), min(len(tokens), len(wanted)))
    margins = case.get("margins") or []
    margin = margins[at] if at < len(margins) else None
    detail = f"token {at + 1} of {len(wanted)} is {tokens[at] if at < len(tokens) else 'missing'}, not {wanted[at] if at < len(wanted) else 'there'}"
    if margin is not None:
        detail += f", where two were {margin:.2f} apart"
    # In `exact` tokens are those of the record, whatever the margin.
    turned = case["numerics"] != "exact" and len(tokens) == len(wanted) and (case["experts"] or (margin is not None and margin < CLOSE))
    return ("differs" if turned else "failed"), detail


class Tokens(Part):
    """Recorded tokens of every artifact for one kind of machine: device numbers, or targets of the CPU."""
    workers = 4  # what is judged is no speed

    def __init__(self, name, context, cases, cuts, where):
        super().__init__(name, context)
        self.cases, self.cuts, self.where, self.cache = cases, cuts, where, context.cache(name)

    def steps(self):
        for case in self.cases:
            yield Step(f"{case['name']} {case['arm']}{self.suffix(case)}", 90, lambda limit, case=case: self.check(case, limit))
        for cut in self.cuts:
            yield Step(f"{cut['name']} {cut['arm']}{self.suffix(cut)}: prompt in pieces", 180, lambda limit, cut=cut: self.check_cut(cut, limit))

    @staticmethod
    def suffix(case):
        return f" {case['target']}" if case.get("target") else ""

    def run(self, artifact, case, count, limit, *more):
        command = [self.machine.program("cortiq-run"), self.context.path(artifact), *self.where, *tokens_of(case, count), *more]
        if case.get("target"):
            command += ["--target", case["target"]]
        return self.machine.call(command, limit, cache=self.cache)

    def check(self, case, limit):
        finished = self.run(case["artifact"], case, len(case["greedy"]), limit, "--stats", *case["flags"])
        if why_not := finished.why_not():
            return ("not run" if NOT_HERE in why_not else "failed"), why_not, {}
        tokens = json.loads(finished.out)["tokens"]
        outcome, detail = judged(case, tokens)
        left = LEFT.search(finished.err)
        if self.where and left and left[1] != "0":
            outcome, detail = "failed", f"left to the CPU: {left[1]}; {detail}"
        return outcome, detail, {"tokens": tokens, "seconds": finished.seconds}

    def check_cut(self, cut, limit):
        """Logits of every position and what comes behind them, the same bits however the prompt is cut."""
        found = {}
        for piece, artifact in cut["artifacts"].items():
            with tempfile.NamedTemporaryFile(dir=self.machine.work, suffix=".f32") as logits:
                finished = self.run(artifact, cut, 6, limit / len(cut["artifacts"]), "--logits", logits.name)
                if why_not := finished.why_not():
                    return ("not run" if NOT_HERE in why_not else "failed"), f"pieces of {piece}: {why_not}", {}
                found[piece] = hashlib.sha256(logits.read()).hexdigest(), json.loads(finished.out)["tokens"]
        whole = found["all"]
        wrong = [f"pieces of {piece} give other {'tokens' if each[1] != whole[1] else 'logits'}" for piece, each in found.items() if each != whole]
        return ("failed" if wrong else "ok"), "; ".join(wrong), {"found": {piece: each[0] for piece, each in found.items()}}


class UnitTests(Part):
    """Programs of GoogleTest; what they skip on this device they say themselves."""

    def __init__(self, name, context, programs):
        super().__init__(name, context)
        self.programs, self.cache = programs, context.cache(name)

    def steps(self):
        for program in self.programs:
            yield Step(program, 300, lambda limit, program=program: self.check(program, limit))

    def check(self, program, limit):
        # The one that reads the sources' text says nothing of a device.
        finished = self.machine.call([self.machine.program(program), "--gtest_filter=-ShaderAbi.*"], limit, cache=self.cache)
        failed = [line.split("]")[1].split("(")[0].strip() for line in finished.out.splitlines() if line.startswith("[  FAILED  ]") and "." in line and "(" in line]
        passed = re.search(r"\[  PASSED  \] (\d+)", finished.out)
        skipped = re.search(r"\[  SKIPPED \] (\d+) test", finished.out)
        detail = f"{passed[1] if passed else 0} passed" + (f", {skipped[1]} skipped" if skipped else "")
        if finished.status is None:
            detail = f"{finished.why_not()} behind {finished.out.count('[       OK ]')} tests"
        elif failed or finished.status:
            detail += f"; {', '.join(sorted(set(failed))) or finished.why_not()}"
        return ("ok" if finished.status == 0 else "failed"), detail, {"seconds": finished.seconds, "tail": finished.out[-4000:]}
