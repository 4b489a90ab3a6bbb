#!/usr/bin/env python3
"""Runs every command of README.md and docs/: what they tell a reader has to be true.

The ```sh blocks of a page run in order, in one shell, in a folder of the page's own that looks like a built checkout and holds a model
(model.gguf) and the artifact made of it (model.cqa). Ports are replaced by free ones. A block that cannot run in a test has a line before
it that says so, and why: "*Not run by the tests: ….*" Other fences hold no commands. Links inside the project have to lead somewhere.
"""
import glob
import os
import re
import sys

import harness

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
# The scripts that set up, build and test run this very test, or have run already to make what it needs.
SCRIPTS = re.compile(r"^tools/(setup|build|demo|test)\b.*$", re.M)
COMMANDS = ("sh",)
OTHER = ("", "c", "cpp", "cmake", "python", "json", "text", "mlir", "nginx", "haproxy", "yaml")
NOT_RUN = re.compile(r"^\*Not run by the tests: (.+)\.\*$")
PAGE_LIMIT = 600  # seconds
# Pages whose commands another test runs, which has what they need.
ELSEWHERE = {"docs/arm.md": "aarch64_test.py"}


class Block:
    def __init__(self, line, text, reason):
        self.line, self.text, self.reason = line, text, reason


def blocks(tally, page, text):
    """The command blocks of a page, with the reason where one is not run."""
    out, before, fence = [], "", None
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"^\s*```(\w*)\s*$", line)
        if match and fence is None:
            fence, begin, body = match.group(1), number, []
            if fence not in COMMANDS + OTHER:
                tally.check(f"{page}:{number}", f"a fence of {fence!r}, which is neither commands (sh) nor anything else that is known")
        elif fence is not None and line.strip() == "```":
            if fence in COMMANDS:
                reason = NOT_RUN.match(before)
                out.append(Block(begin, "\n".join(body), reason.group(1) if reason else None))
            fence, before = None, ""
        elif fence is not None:
            body.append(line)
        elif line.strip():
            before = line.strip()
    return out


def check_links(tally, page, text, generated):
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose):
        if re.match(r"\w+:", target):
            continue
        path = os.path.normpath(os.path.join(os.path.dirname(os.path.join(ROOT, page)), target))
        tally.check(f"{page}: {target}", "" if os.path.exists(path) or os.path.basename(target) in generated else "leads nowhere")


def furnish(args, folder, artifact):
    """A folder as a reader has it: the checkout's parts, its build, a model and an artifact."""
    build = os.path.dirname(os.path.realpath(args.bin))
    os.makedirs(os.path.join(folder, "build", "models"))
    for name in os.listdir(build):
        if name != "models":
            os.symlink(os.path.join(build, name), os.path.join(folder, "build", name))
    for name in ("api", "examples", "python"):
        if os.path.exists(os.path.join(ROOT, name)):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    model = os.path.realpath(os.path.join(args.models, MODEL))
    os.symlink(model, os.path.join(folder, "build", "models", MODEL))
    os.symlink(model, os.path.join(folder, "model.gguf"))
    os.symlink(artifact, os.path.join(folder, "model.cqa"))


def run_page(tally, args, page, found, artifact):
    with harness.Scratch() as scratch:
        furnish(args, scratch.folder, artifact)
        ports = {}
        script = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true; wait || true' EXIT"]
        runnable = []
        for block in found:
            label = f"{page}:{block.line}"
            for name in SCRIPTS.findall(block.text):
                tally.check(f"{label}: tools/{name} exists", "" if os.access(os.path.join(ROOT, "tools", name), os.X_OK) else "it is not there")
            commands = SCRIPTS.sub("", block.text).strip()
            if block.reason:
                tally.skip(f"{label}: {block.reason}")
            elif commands:
                for port in re.findall(r"(?<=:)\d{4,5}\b|(?<=--port )\d+", commands):
                    commands = re.sub(rf"\b{port}\b", ports.setdefault(port, str(harness.free_port())), commands)
                script += [f"echo '@@ {len(runnable)}' >&2", commands]
                runnable.append(label + ": " + commands.splitlines()[0])
        if not runnable:
            return
        home = scratch.path("home")
        os.makedirs(home)
        env = dict(os.environ, HOME=home, PATH=os.path.realpath(args.bin) + os.pathsep + os.environ["PATH"], XDG_CACHE_HOME=scratch.path("cache"),
                   PYTHON=sys.executable)
        result = harness.run(["bash", "-c", "\n".join(script)], timeout=PAGE_LIMIT, cwd=scratch.folder, env=env)
        reached = len(re.findall(r"^@@ \d+$", result.stderr, re.M)) - 1
        failed = reached if result.returncode != 0 else len(runnable)
        said = [line for line in result.stderr.split("@@ ")[-1].splitlines()[1:] + result.stdout.splitlines()[-3:] if line]
        last = said[-6:]
        for index, label in enumerate(runnable):
            tally.check(label, "" if index < failed else " | ".join(last) or "no message" if index == failed else "not reached")


def main():
    args = harness.arguments(__doc__, models=harness.MODELS,
                             page={"help": "only this page, as docs/targets.md"})
    harness.need_tools(args, "cortiq-compile", "cortiq-run", "cortiq-inspect", "cortiq-bench", "cortiq-convert", "cortiq-serve", "cortiq-skill")
    tally = harness.Tally()
    pages = [args.page] if args.page else ["README.md", *sorted(os.path.relpath(path, ROOT) for path in glob.glob(os.path.join(ROOT, "docs", "*.md")))]
    texts = {page: open(os.path.join(ROOT, page), encoding="utf-8").read() for page in pages}
    generated = os.listdir(os.path.join(os.path.dirname(os.path.realpath(args.bin)), "docs"))
    for page, text in texts.items():
        check_links(tally, page, text, generated)
    if not args.page:
        index = texts["docs/README.md"]
        for page in pages[1:]:
            name = os.path.basename(page)
            tally.check(f"{page} is in the index", "" if name == "README.md" or f"({name})" in index else "docs/README.md does not link it")
        for name in ("cmf.md", "kernel.md", "passes.md", "vec.md"):
            tally.check(f"the reference {name}", "" if name in generated else "the build did not generate it")
    if not os.path.exists(os.path.join(args.models, MODEL)):
        tally.skip(f"every command: {MODEL} is not in {args.models}: tools/demo fetches it")
        return tally.finish()
    with harness.Scratch() as scratch:
        artifact = scratch.path("model.cqa")
        made = harness.run([os.path.join(args.bin, "cortiq-compile"), os.path.join(args.models, MODEL), "-o", artifact], timeout=300)
        tally.check("compile the model", harness.why_not_success(made))
        for page, text in texts.items():
            if page in ELSEWHERE:
                with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), ELSEWHERE[page]), encoding="utf-8") as file:
                    tally.check(f"{page} is run by {ELSEWHERE[page]}", "" if page in file.read() else "it does not name it")
                continue
            run_page(tally, args, page, blocks(tally, page, text), artifact)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
