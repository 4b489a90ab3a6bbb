#!/usr/bin/env python3
"""Runs every command block of README.md: what it tells a newcomer has to be true."""
import os
import re
import sys

import harness

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
# The scripts that set up, build and test run this very test, or have run already to make what it needs.
SCRIPTS = re.compile(r"^tools/(setup|build|demo|test)\b.*$", re.M)


def blocks():
    text = open(os.path.join(ROOT, "README.md"), encoding="utf-8").read()
    return re.findall(r"^```sh\n(.*?)^```$", text, re.M | re.S)


def main():
    args = harness.arguments(__doc__, models={"default": os.environ.get("CORTIQ_MODELS", ""), "help": "folder of real models (CORTIQ_MODELS)"})
    harness.need_tools(args, "cortiq-compile", "cortiq-run", "cortiq-inspect", "cortiq-bench", "cortiq-convert", "cortiq-skill")
    if not os.path.exists(os.path.join(args.models, MODEL)):
        harness.skip_all(f"{MODEL} is not in {args.models}: tools/demo fetches it")
    tally = harness.Tally()
    tally.check("README.md has command blocks", None if blocks() else "none found")
    with harness.Scratch() as scratch:
        # The blocks name build/bin and build/models from the root of the project; here they run in a folder that has just these.
        os.makedirs(scratch.path("build"))
        os.symlink(os.path.realpath(args.bin), scratch.path("build/bin"))
        os.makedirs(scratch.path("build/models"))
        os.symlink(os.path.realpath(os.path.join(args.models, MODEL)), scratch.path("build/models/" + MODEL))
        for block in blocks():
            for script in SCRIPTS.findall(block):
                tally.check(f"tools/{script} exists", None if os.access(os.path.join(ROOT, "tools", script), os.X_OK) else "it is not there")
            commands = SCRIPTS.sub("", block).strip()
            if not commands:
                continue
            result = harness.run(["bash", "-euo", "pipefail", "-c", commands], timeout=300, cwd=scratch.folder)
            tally.check(commands.splitlines()[0], harness.why_not_success(result))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
