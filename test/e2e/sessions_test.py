#!/usr/bin/env python3
"""cortiq-run --save-session and --load-session: what goes on from a saved session is what an uninterrupted run says, in every kind of
model and cache; what does not fit is refused with the remedy.
"""
import json
import os
import sys

import harness

# Attention, rings, recurrent states, convolutions, latent attention, experts; models with a block that guesses are made.
KINDS = ("qwen3-q4t", "gemma3-q4tp", "qwen3_5-q4tp", "qwen3_next-q8_2f", "lfm2-q8", "deepseek_v2-q4t", "qwen3_moe-q4tp", "skills")
IDS = [1, 5, 9, 17, 33, 2, 40, 41]
CHAT_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"


class Runner:
    def __init__(self, args, tally, artifact):
        self.program, self.tally, self.artifact = os.path.join(args.bin, "cortiq-run"), tally, artifact

    def call(self, *options, **more):
        return harness.run([self.program, self.artifact, *map(str, options)], **more)

    def answer(self, label, *options, **more):
        result = self.call(*options, "--json", **more)
        self.tally.check(label, harness.why_not_success(result))
        return [json.loads(line) for line in result.stdout.splitlines()] if result.returncode == 0 else [{"tokens": [], "usage": {}}]

    def tokens(self, label, *options):
        return self.answer(label, *options)[-1]["tokens"]

    def refused(self, label, words, *options, **more):
        result = self.call(*options, **more)
        why = harness.why_not_refusal(result)
        missing = [word for word in words if word not in result.stderr]
        self.tally.check(label, why or (f"the sentence lacks {missing}: {result.stderr}" if missing else ""))


def ids(values):
    return "--tokens", ",".join(map(str, values))


def check_going_on(run, kind, session, *flags):
    equal = lambda label, a, b: run.tally.check(f"{kind}: {label}", "" if a == b else f"{a} instead of {b}")
    for kv in ("f32", "f16", "q8"):
        for how in (("--temp", "0"), ("--temp", "0.9", "--seed", "5")):
            label = f"{kind}, {kv}, {how[1]}"
            base = (*how, "--kv", kv, "--ignore-eos", *flags)
            whole = run.tokens(label, *ids(IDS), "-n", 60, *base)
            first = run.tokens(label, *ids(IDS), "-n", 25, *base, "--save-session", session)
            then = run.tokens(label, "-n", 20, *base, "--load-session", session, "--save-session", session)
            last = run.tokens(label, "-n", 15, *base, "--load-session", session)
            equal(f"{kv} {how[1]}: three runs are one", first + then + last, whole)
    run.call(*ids(IDS), "-n", 0, "--save-session", session)
    for label, prompt, kept in (("the same prompt", IDS, len(IDS) - 1), ("a longer one", IDS + [3, 4], len(IDS) - 1),
                                ("one that leaves it", IDS[:4] + [7, 7, 7], 4), ("one that is shorter", IDS[:3], 2), ("another", [50, 51], 0)):
        want = run.answer(label, *ids(prompt), "-n", 12, "--temp", 0)[-1]
        got = run.answer(label, *ids(prompt), "-n", 12, "--temp", 0, "--load-session", session)[-1]
        equal(f"{label} says the same", got["tokens"], want["tokens"])
        equal(f"{label} re-uses what is alike", got["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0), kept)
        equal(f"{label} counts all of it", got["usage"]["prompt_tokens"], len(prompt))


def check_refusals(run, other, skills, scratch):
    session = scratch.path("refused.session")
    run.tally.check("save", harness.why_not_success(run.call(*ids(IDS), "-n", 4, "--temp", 0, "--kv", "f16", "--save-session", session)))
    load = ("--load-session", session, "-n", "4")
    run.refused("another cache type", ["--kv f16"], *load, "--kv", "f32")
    run.refused("a smaller context", ["--max-context 11"], *load, "--kv", "f16", "--max-context", 8)
    other.refused("another artifact", ["another artifact", "begin a new session"], *load, "--kv", "f16")
    run.refused("no such file", ["none.session", "No such file"], "--load-session", scratch.path("none.session"))
    run.refused("no session", ["not a saved session"], "--load-session", run.artifact)
    run.refused("a folder", ["is not a file"], "--load-session", scratch.folder)
    run.refused("nothing to save", ["--load-session"], "--save-session", session, "--verify")
    run.refused("the artifact itself", ["is the input itself"], *ids(IDS), "-n", 1, "--save-session", run.artifact)
    run.refused("logits", ["--load-session"], *ids(IDS), *load, "--logits", scratch.path("l.f32"))
    under = scratch.path("skill.session")
    name = "story"
    run.tally.check("save under a skill",
                    harness.why_not_success(skills.call(*ids(IDS), "-n", 4, "--temp", 0, "--skill", name, "--save-session", under)))
    skills.refused("another skill", [f"--skill {name}"], "--load-session", under, "-n", 4)
    skills.tokens("the same skill", "--load-session", under, "-n", 4, "--skill", name)
    run.refused("a folder that is not there", ["no/such"], *ids(IDS), "-n", 1000, "--save-session", scratch.path("no/such/s"))
    # Damage, a full disk, and a file that nobody may read.
    with open(session, "rb") as file:
        whole = file.read()
    for label, bytes_ in (("cut in half", whole[:len(whole) // 2]), ("a flipped bit", whole[:-100] + bytes([whole[-100] ^ 4]) + whole[-99:])):
        with open(scratch.path("bad.session"), "wb") as file:
            file.write(bytes_)
        run.refused(label, ["bad.session", "damaged", "save it again"], "--load-session", scratch.path("bad.session"), "--kv", "f16", "-n", 1)
    full = scratch.path("full.session")
    result = harness.run(["bash", "-c", 'ulimit -f 8; exec "$@"', "run", run.program, run.artifact, *ids(IDS), "-n", "0", "--save-session", full])
    run.tally.check("a full disk", harness.why_not_refusal(result, full))
    if os.geteuid() != 0:
        os.chmod(session, 0)
        run.refused("unreadable", ["Permission denied"], *load)


def check_chat(run, scratch):
    session = scratch.path("chat.session")
    how = ("--chat", "--temp", 0, "-n", 24)
    whole = run.answer("a conversation", *how, input="My name is Ada.\nWhat is my name?\n")
    first = run.answer("its first half", *how, "--save-session", session, input="My name is Ada.\n")
    second = run.answer("its second half", *how, "--load-session", session, input="What is my name?\n")
    both = [answer["tokens"] for answer in first + second]
    run.tally.check("a conversation goes on", "" if both == [answer["tokens"] for answer in whole] else f"{both}")
    cached = second[0]["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0)
    run.tally.check("and computes only what is new", "" if cached > 20 else f"{cached} tokens were re-used")
    run.refused("--system in a conversation that has begun", ["--system"], *how, "--load-session", session, "--system", "Be brief.", input="Hi\n")


def main():
    args = harness.arguments(__doc__, models=harness.MODELS)
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        runners = {}
        for kind in KINDS:
            model = harness.need_fixtures(args, "models", kind + ".cmf")
            artifact = scratch.path(kind + ".cqa")
            tally.check(f"compile {kind}", harness.why_not_success(harness.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact])))
            runners[kind] = Runner(args, tally, artifact)
            check_going_on(runners[kind], kind, scratch.path(kind + ".session"))
        harness.tiny_models()  # puts test/cases on the path
        import tiny_drafts
        for case in tiny_drafts.CASES[:2]:
            artifact = scratch.path(case.name + ".cqa")
            tally.check(f"compile {case.name}", harness.why_not_success(
                harness.run([os.path.join(args.bin, "cortiq-compile"), tiny_drafts.write(case, scratch.folder), "-o", artifact])))
            check_going_on(Runner(args, tally, artifact), case.name, scratch.path("drafts.session"), "--speculate", "on")
        check_refusals(runners["qwen3-q4t"], runners["lfm2-q8"], runners["skills"], scratch)
        gpu = scratch.path("gpu.cqa")
        tally.check("compile for a GPU", harness.why_not_success(harness.run(
            [os.path.join(args.bin, "cortiq-compile"), harness.need_fixtures(args, "models", "qwen3-q4t.cmf"), "--target", "vulkan", "-o", gpu])))
        devices = harness.run([os.path.join(args.bin, "cortiq-run"), "--device", "list"])
        if devices.returncode == 0 and devices.stdout and "cannot be used" not in devices.stdout.splitlines()[0]:
            Runner(args, tally, gpu).refused("a session on a GPU", ["--device none"], *ids(IDS), "-n", 1, "--device", 0, "--save-session", scratch.path("g"))
        else:
            tally.skip("there is no Vulkan device")
        chat = os.path.join(args.models, CHAT_MODEL)
        if os.path.exists(chat):
            artifact = scratch.path("chat.cqa")
            tally.check("compile the chat model", harness.why_not_success(
                harness.run([os.path.join(args.bin, "cortiq-compile"), chat, "-o", artifact], timeout=300)))
            check_chat(Runner(args, tally, artifact), scratch)
        else:
            tally.skip(f"{CHAT_MODEL} is not in {args.models}: tools/demo fetches it")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
