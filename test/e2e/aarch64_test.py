#!/usr/bin/env python3
"""The cross-built cortiq-run under emulation (CORTIQ_AARCH64_BIN names its folder): what it is made of, what it refuses, that it needs
nothing beside it, text, caches and experts larger than their budget. Tokens of every fixture: aarch64_fixtures_test.py.
"""
import json
import os
import re
import shutil
import struct
import sys

import harness
from aarch64_programs import TARGETS, find_programs

MODEL = "models/llama-q8.cmf"
EXPERTS = ("models/qwen3_moe-q8_2f.cmf", "models-gguf/qwen3moe-q4_k.gguf")
MOST_BYTES = 12 << 20
AARCH64, INTERPRETER, DYNAMIC = 183, 3, 2  # of ELF: e_machine; p_type of what a dynamic program has
GREEDY = ("-n", "16", "--temp", "0", "--ignore-eos", "--json")
PAGE = "docs/arm.md"
REAL_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


def what_is_not_static(path):
    """Why a file is no AArch64 program that the kernel starts by itself."""
    with open(path, "rb") as f:
        image = f.read()
    machine, = struct.unpack_from("<H", image, 18)
    offset, = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    types = [struct.unpack_from("<I", image, offset + i * size)[0] for i in range(count)]
    if machine != AARCH64:
        return f"it is for machine {machine}"
    return "it asks for an interpreter or shared libraries" if INTERPRETER in types or DYNAMIC in types else None


class Arm:
    def __init__(self, args, programs, scratch, tally):
        self.args, self.programs, self.scratch, self.tally = args, programs, scratch, tally
        with open(programs.runner, "rb") as f:
            self.has_text = b"CORTIQ_BUILD_TEXT=OFF" not in f.read()  # what a program without the text library says

    def compile(self, model, target, numerics):
        """The artifact, or None where that failed (and was counted)."""
        artifact = self.scratch.output(".cqa")
        why_not = harness.why_not_success(harness.run([os.path.join(self.args.bin, "cortiq-compile"), os.path.join(self.args.fixtures, model), "-o", artifact,
                                                       "--target", target, "--numerics", numerics]))
        if why_not:
            self.tally.check(f"compile {model} for {target}", why_not)
        return None if why_not else artifact

    def run(self, cpu, artifact, *flags):
        return harness.run([*self.programs.on(cpu), artifact, *flags], timeout=300)

    def tokens(self, cpu, artifact, *flags):
        result = self.run(cpu, artifact, *GREEDY, *flags)
        why_not = harness.why_not_success(result)
        return (None, why_not) if why_not else (json.loads(result.stdout.splitlines()[0])["tokens"], None)

    def record(self, model):
        with open(os.path.join(self.args.fixtures, os.path.splitext(model)[0] + ".expect.json")) as f:
            return json.load(f)

    def check_program(self):
        size = os.path.getsize(self.programs.runner)
        self.tally.check("size of the program", "" if size <= MOST_BYTES else f"{size} bytes, at most {MOST_BYTES}")
        self.tally.check("a static program", what_is_not_static(self.programs.runner))
        self.tally.note(f"{self.programs.runner}: {size} bytes{'' if self.has_text else ', without the text library'}")

    def check_targets(self):
        """One artifact a target: the recorded tokens where the processor has what it needs, else a sentence that names what fits."""
        record = self.record(MODEL)
        flags = ("--tokens", ",".join(map(str, record["prompt_ids"])))
        artifacts = {target: self.compile(MODEL, target, "exact") for target, _ in TARGETS}
        lacks = {("dotprod", "cortex-a72"): "asimddp", ("i8mm", "cortex-a72"): "asimddp, i8mm", ("i8mm", "cortex-a76"): "i8mm"}
        for target, artifact in artifacts.items():
            for best, cpu in TARGETS:
                label = f"code for {target} on {cpu}"
                if not artifact:
                    continue
                if (target, cpu) not in lacks:
                    got, why_not = self.tokens(cpu, artifact, *flags)
                    self.tally.check(label, why_not or ("" if got == record["greedy_ids"] else f"{got}, expected {record['greedy_ids']}"))
                    continue
                refused = self.run(cpu, artifact, "--tokens", "1")
                words = (f"its code needs {lacks[target, cpu]}, which this CPU does not have", f"--target {best}")
                self.tally.check(label + " is refused", harness.why_not_refusal(refused)
                                 or next((f"{word!r} is not in {refused.stderr!r}" for word in words if word not in refused.stderr), None))
        here = harness.run([os.path.join(self.args.bin, "cortiq-run"), artifacts["armv8"], "--tokens", "1"])
        self.tally.check("another machine refuses it", harness.why_not_refusal(here) or ("" if "AArch64" in here.stderr else here.stderr))
        foreign = self.compile(MODEL, "x86-64-v3", "exact")
        there = self.run("max", foreign, "--tokens", "1")
        self.tally.check("it refuses another machine's", harness.why_not_refusal(there) or ("" if "x86-64" in there.stderr else there.stderr))
        return artifacts["armv8"]

    def check_caches(self):
        """Elements of the cache that are no f32: what the same artifact's other arm of the machine, x86, generates from them."""
        record = self.record(MODEL)
        flags = ("--tokens", ",".join(map(str, record["prompt_ids"])))
        arm, x86 = self.compile(MODEL, "dotprod", "fast"), self.compile(MODEL, "x86-64-v3", "fast")
        if not arm or not x86:
            return
        for kv in ("f16", "q8", "f32"):
            got, why_not = self.tokens("cortex-a76", arm, *flags, "--kv", kv)
            here = harness.run([os.path.join(self.args.bin, "cortiq-run"), x86, *flags, *GREEDY, "--kv", kv])
            want = json.loads(here.stdout)["tokens"] if here.returncode == 0 else harness.first_line(here)
            self.tally.check(f"--kv {kv}", why_not or ("" if got == want else f"{got}, on x86 {want}"))

    def check_experts(self):
        """Under the smallest budget that works, experts are read from the file as they are asked for; results are the same."""
        for model, target, cpu in zip(EXPERTS, ("armv8", "dotprod"), ("cortex-a72", "cortex-a76")):
            record = self.record(model)
            artifact = self.compile(model, target, "fast")
            if not artifact:
                continue
            flags = ("--tokens", ",".join(map(str, record["prompt_ids"])), "--max-context", "64")
            refused = self.run(cpu, artifact, *flags, "--memory", "4K")
            least = re.search(r"the least that works is --memory (\d+M)", refused.stderr)
            self.tally.check(f"{model}: 4K is refused", harness.why_not_refusal(refused) or (None if least else refused.stderr))
            if not least:
                continue
            whole, why_not = self.tokens(cpu, artifact, *flags)
            self.tally.check(f"{model}: without a budget", why_not)
            some, why_not = self.tokens(cpu, artifact, *flags, "--memory", least[1])
            self.tally.check(f"{model}: --memory {least[1]}", why_not or ("" if some == whole else f"{some}, not {whole}"))

    def check_text(self, artifact):
        """Text in, text out: what the recorded tokens spell."""
        record = self.record(MODEL)
        flags = ("-p", record["prompt_text"], "-n", str(len(record["greedy_ids"])), "--temp", "0", "--ignore-eos")
        arm = self.run("cortex-a72", artifact, *flags)
        self.tally.check("text in and out", harness.why_not_success(arm)
                         or ("" if arm.stdout.strip() == record["greedy_text"].strip() else f"{arm.stdout!r}, expected {record['greedy_text']!r}"))

    def check_empty_root(self, artifact):
        if os.geteuid() != 0:
            self.tally.skip("an empty root needs root's rights")
            return
        root = self.scratch.path("root")
        os.mkdir(root)
        for path, name in ((self.programs.emulator, "qemu"), (self.programs.runner, "cortiq-run"), (artifact, "model.cqa")):
            shutil.copy(path, os.path.join(root, name))
        record = self.record(MODEL)
        ask = ("-p", record["prompt_text"]) if self.has_text else ("--tokens", ",".join(map(str, record["prompt_ids"])))
        alone = harness.run(["chroot", root, "/qemu", "-cpu", "cortex-a72", "/cortiq-run", "/model.cqa", *ask, *GREEDY], timeout=300)
        why_not = harness.why_not_success(alone)
        self.tally.check("in an otherwise empty root", why_not or ("" if json.loads(alone.stdout)["tokens"] == record["greedy_ids"] else alone.stdout))

    def check_page(self, models):
        """The command blocks of docs/arm.md; what builds has run already, and a board is not at hand."""
        root = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
        with open(os.path.join(root, PAGE), encoding="utf-8") as f:
            blocks = re.findall(r"^```sh\n(.*?)^```$", f.read(), re.M | re.S)
        self.tally.check(f"{PAGE} has command blocks", None if blocks else "none found")
        if not self.has_text or not os.path.exists(os.path.join(models, REAL_MODEL)):
            self.tally.skip(f"the commands of {PAGE} need {REAL_MODEL} (tools/demo fetches it) and the text library in the program")
            return
        place = self.scratch.path("page")
        for name, target in (("build/bin", self.args.bin), ("build-aarch64/bin", os.path.dirname(self.programs.runner)),
                             (f"build/models/{REAL_MODEL}", os.path.join(models, REAL_MODEL))):
            os.makedirs(os.path.dirname(os.path.join(place, name)), exist_ok=True)
            os.symlink(os.path.realpath(target), os.path.join(place, name))
        for block in blocks:
            commands = re.sub(r"^(tools/|cmake --).*$", "", block, flags=re.M).strip()
            if commands:
                result = harness.run(["bash", "-euo", "pipefail", "-c", commands], timeout=600, cwd=place)
                self.tally.check(commands.splitlines()[0], harness.why_not_success(result))


def main():
    args = harness.arguments(__doc__, models=harness.MODELS)
    programs = find_programs(args)
    harness.need_tools(args, "cortiq-compile", "cortiq-run", "cortiq-inspect")
    harness.need_fixtures(args, MODEL)
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        arm = Arm(args, programs, scratch, tally)
        arm.check_program()
        artifact = arm.check_targets()
        arm.check_caches()
        arm.check_experts()
        if artifact:
            if arm.has_text:
                arm.check_text(artifact)
            else:
                tally.skip("text: the program was built without the text library (CORTIQ_BUILD_TEXT=OFF)")
            arm.check_empty_root(artifact)
        arm.check_page(args.models)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
