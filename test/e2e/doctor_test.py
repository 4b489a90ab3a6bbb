#!/usr/bin/env python3
"""cortiq-run --doctor on this machine: text and JSON say the same, an artifact for another machine is told apart, and colours go to
terminals alone.
"""
import json
import os
import pty
import subprocess
import sys

import harness


def on_a_terminal(command, env):
    """What `command` writes to a terminal."""
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdout=slave, stderr=slave, stdin=subprocess.DEVNULL, env=env)
    os.close(slave)
    out = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the terminal is gone with its last program
            break
        if not piece:
            break
        out += piece
    process.wait()
    os.close(master)
    return out.decode()


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-compile", "cortiq-opt", "cortiq-run")
    tally = harness.Tally()
    run, compiler = os.path.join(args.bin, "cortiq-run"), os.path.join(args.bin, "cortiq-compile")

    def expect(label, text, *words):
        missing = [word for word in words if word not in text]
        tally.check(label, f"it lacks {missing}: {text}" if missing else "")

    with harness.Scratch() as scratch:
        artifact, plain, foreign = (scratch.path(name + ".cqa") for name in ("m", "plain", "foreign"))
        for path, more in ((artifact, []), (plain, ["--target", "x86-64-v3", "--numerics", "exact"]), (foreign, ["--target", "i8mm"])):
            tally.check("compile", harness.why_not_success(harness.run([compiler, model, "-o", path, *more])))

        text = harness.run([run, "--doctor", artifact, "--verify"])
        tally.check("text", harness.why_not_success(text))
        expect("text", text.stdout, "cpu ", "features ", "target ", "native ", "threads ", "memory ", "nodes ", "read speed ", "large pages ",
               "gpu ", "compiler ", "runs here: qwen3", "every hash right")
        result = harness.run([run, "--doctor", "--json", artifact])
        tally.check("json", harness.why_not_success(result))
        said = json.loads(result.stdout)
        tally.check("json: the target", "" if said["file"]["runs"] and said["file"]["target"] == said["native"] else said["file"])
        tally.check("json: measured", "" if said["memory"]["read_gbps"] > 0 and said["threads"]["default"] >= 1 else said)
        tally.check("json: a GPU, or why not", "" if said["gpus"] or said["no_gpus"] else "neither")
        if said["native"] != "x86-64-v3":
            steps = json.loads(harness.run([run, "--doctor", "--json", plain]).stdout)["next_steps"]
            expect("an artifact below the machine", " ".join(steps), f"--target {said['native']}", "--numerics fast")
        else:
            tally.skip("this machine has the plainest target alone")

        result = harness.run([run, "--doctor", foreign])
        tally.check("an artifact for another machine: status", "" if result.returncode == 2 else f"{result.returncode}")
        expect("an artifact for another machine", result.stdout, "does not run here", "next step", "compile the model")
        tally.check("and one sentence", "" if result.stderr.count("\n") == 1 else result.stderr)
        result = harness.run([run, "--doctor", "--json", foreign])
        tally.check("and in JSON", "" if json.loads(result.stdout)["file"]["why_not"] in result.stderr else result.stdout)
        expect("a model", harness.run([run, "--doctor", model]).stdout, "is a model", "cortiq-compile")
        missing = harness.run([run, "--doctor", scratch.path("none.cqa")])
        tally.check("a missing file", "" if missing.returncode == 2 and "none.cqa" in missing.stderr else missing.stderr)
        if len(os.sched_getaffinity(0)) > 1:
            one = json.loads(harness.run(["taskset", "-c", str(min(os.sched_getaffinity(0))), run, "--doctor", "--json"]).stdout)
            expect("one processor of several", " ".join(one["next_steps"]), "taskset")
            tally.check("is one thread", "" if one["threads"]["default"] == 1 else one["threads"])
        else:
            tally.skip("this machine has one processor")
        blind = harness.run([run, "--doctor", "--json"], env=dict(os.environ, VK_ICD_FILENAMES="/nonexistent", VK_DRIVER_FILES="/nonexistent"))
        said = json.loads(blind.stdout)
        tally.check("no driver for a GPU", "" if not said["gpus"] else said["gpus"])

        env = {**os.environ, "TERM": "xterm"}
        env.pop("NO_COLOR", None)
        tally.check("colours on a terminal", "" if "\033[" in on_a_terminal([run, "--doctor"], env) else "none")
        tally.check("none where NO_COLOR says so", "" if "\033[" not in on_a_terminal([run, "--doctor"], {**env, "NO_COLOR": "1"}) else "some")
        wrong = scratch.path("wrong.mlir")
        with open(wrong, "w") as file:
            file.write("func.func @x( {")
        opt = [os.path.join(args.bin, "cortiq-opt"), wrong]
        tally.check("colours in the compiler's messages", "" if "\033[" in on_a_terminal(opt, env) else "none")
        tally.check("none there with NO_COLOR", "" if "\033[" not in on_a_terminal(opt, {**env, "NO_COLOR": "1"}) else "some")
        tally.check("none in a pipe", "" if "\033[" not in text.stdout else "some")
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
