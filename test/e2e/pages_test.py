#!/usr/bin/env python3
"""Manual pages and shell completions, as the build makes them of each program's options: complete, well-formed, installed, and what bash
then completes.
"""
import json
import os
import re
import shutil
import sys

import harness

PROGRAMS = {"runtime": ("cortiq-bench", "cortiq-run", "cortiq-serve"),
            "compiler": ("cortiq-compile", "cortiq-convert", "cortiq-inspect", "cortiq-opt", "cortiq-skill")}
PAGES = ("man/man1/{}.1", "bash-completion/completions/{}", "zsh/site-functions/_{}", "fish/vendor_completions.d/{}.fish")

# (words of the command line, the last one being completed; what is offered)
COMPLETED = [
    (("cortiq-run", "--kv", ""), {"f32", "f16", "q8"}),
    (("cortiq-run", "--kv", "=", "f"), {"f32", "f16"}),
    (("cortiq-run", "--kv", "="), {"f32", "f16", "q8"}),
    (("cortiq-run", "--tem"), {"--temp"}),
    (("cortiq-run", "a.cqa", "--save"), {"--save-session"}),
    (("cortiq-run", "a "), {"a b.cqa"}),
    (("cortiq-run", "--load-session", "a "), {"a b.cqa"}),
    (("cortiq-run", "-p", ""), set()),
    (("cortiq-run", "--seed", ""), set()),
    (("cortiq-compile", "--emit", "=", "ke"), {"kernel"}),
    (("cortiq-compile", "--numerics", ""), {"fast", "exact"}),
    (("cortiq-compile", "-o", "a "), {"a b.cqa"}),
    (("cortiq-serve", "--log", "j"), {"json"}),
    (("cortiq-skill", "at"), {"attach"}),
    (("cortiq-skill", "attach", "--em"), {"--embed"}),
    (("cortiq-skill", "detach", "--em"), set()),
    (("cortiq-skill", "verify", "a "), {"a b.cqa"}),
]


def tree_of(args, program):
    return json.loads(harness.run([os.path.join(args.bin, program), "--help-json"]).stdout)


def names(tree):
    return {name for part in (tree, *tree["commands"]) for option in part["options"] for name in option["names"]}


def complete(share, words, folder):
    """What bash offers for the last of `words`."""
    program = words[0]
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              f'_{program.replace("-", "_")}; printf "%s\\n" "${{COMPREPLY[@]}}"')
    result = harness.run(["bash", "--norc", "-c", script, "complete", os.path.join(share, PAGES[1].format(program)), *words], cwd=folder)
    return {line for line in result.stdout.splitlines() if line}, result.stderr


def check_program(tally, args, share, program, mandoc):
    tree = tree_of(args, program)
    paths = [os.path.join(share, page.format(program)) for page in PAGES]
    missing = [path for path in paths if not os.path.exists(path)]
    tally.check(f"{program}: pages", f"missing: {missing}" if missing else "")
    if missing:
        return
    text = open(paths[0], encoding="utf-8").read().replace("\\-", "-")
    absent = [name for name in names(tree) if name not in text]
    tally.check(f"{program}: the manual page has every option", absent)
    tally.check(f"{program}: and every section", [head for head in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "SEE ALSO") if f".SH {head}" not in text])
    if mandoc:
        lint = harness.run([mandoc, "-T", "lint", "-W", "warning", paths[0]])
        # No date: equal programs have equal pages.
        faults = [line for line in lint.stdout.splitlines() if line and "missing date" not in line]
        tally.check(f"{program}: mandoc", faults)
    for path in paths[1:]:
        text = open(path, encoding="utf-8").read()
        absent = [name for name in names(tree) if name.lstrip("-") not in text]
        tally.check(f"{program}: {os.path.basename(path)} has every option", absent)
    for shell, path in (("bash", paths[1]), ("zsh", paths[2]), ("fish", paths[3])):
        if shutil.which(shell):
            tally.check(f"{program}: {shell} reads it", harness.why_not_success(harness.run([shell, "-n", path])))
    if not tree["commands"]:
        offered, _ = complete(share, (program, "-"), "/")
        tally.check(f"{program}: every option is offered", sorted(names(tree) ^ offered))
    else:
        offered, _ = complete(share, (program, ""), "/")
        tally.check(f"{program}: every command is offered", sorted({command["name"] for command in tree["commands"]} - offered))


def main():
    args = harness.arguments(__doc__)
    for programs in PROGRAMS.values():
        harness.need_tools(args, *programs)
    build = os.path.dirname(os.path.abspath(args.bin))
    share = os.path.join(build, "share")
    tally = harness.Tally()
    mandoc = shutil.which("mandoc")
    if not mandoc:
        tally.skip("mandoc is not installed: tools/setup installs it")
    for shell in ("zsh", "fish"):
        if not shutil.which(shell):
            tally.skip(f"{shell} is not installed: its completions are not read")
    for programs in PROGRAMS.values():
        for program in programs:
            check_program(tally, args, share, program, mandoc)
    with harness.Scratch() as scratch:
        open(scratch.path("a b.cqa"), "w").close()
        for words, want in COMPLETED:
            got, errors = complete(share, words, scratch.folder)
            tally.check(" ".join(words), errors or ("" if got == want else f"{sorted(got)} instead of {sorted(want)}"))
        for component, programs in PROGRAMS.items():
            prefix = scratch.path(component)
            tally.check(f"install {component}", harness.why_not_success(
                harness.run(["cmake", "--install", build, "--prefix", prefix, "--component", component])))
            absent = [page.format(program) for program in programs for page in PAGES if not os.path.exists(os.path.join(prefix, "share", page.format(program)))]
            tally.check(f"installed with {component}", absent)
            page = os.path.join(prefix, "share", PAGES[0].format(programs[0]))
            if mandoc:
                shown = harness.run([mandoc, "-T", "utf8", page])
                tally.check(f"{programs[0]}: shown", "" if re.search(r"cortiq manual", shown.stdout) else shown.stdout[:80])
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
