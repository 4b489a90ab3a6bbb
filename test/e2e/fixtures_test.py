#!/usr/bin/env python3
"""Runs the shared fixtures' own checkers over what this version of the project supports, and says what it left out."""
import glob
import json
import os
import re
import sys

import harness

# What the front ends and the codec table hold; a fixture that needs more is listed as skipped.
ARCHITECTURES = {"llama", "llama_h256", "llama_tied", "mistral", "qwen2", "qwen3", "qwen3_tied"}
CMF_CODECS = ("f32", "f16", "bf16", "q8_row", "q8_2f", "q4_block", "q4_tiled", "q4tp")
GGUF_CODECS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL")
REAL_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)


def unsupported(spec):
    """What of a fixture this version lacks, as (kind, names); None when it lacks nothing."""
    if "cases" in spec:
        return "feature", {"skills, masks, pruning and signatures"}
    if spec["family"] not in ARCHITECTURES:
        return "architecture", {spec["family"]}
    if "-of-" in spec["model"]:
        return "feature", {"split files"}
    lacking = set(spec["dtypes"]) - set(CMF_CODECS) - set(GGUF_CODECS)
    return ("codec", lacking) if lacking else None


def run_checker(tally, args, script, *flags):
    """Runs a checker and adds its own totals to ours."""
    command = [sys.executable, os.path.join(args.fixtures, "check", script), "--bin", args.bin, *flags]
    result = harness.run(command, timeout=1500)
    print(result.stdout, end="")
    totals = PLAIN.findall(result.stdout)
    if not totals:
        tally.check(script, f"no totals: {harness.first_line(result)}")
        return
    passed, failed, skipped = map(int, totals[-1])
    tally.passed += passed
    tally.failed += failed
    if skipped:
        tally.skip(f"{skipped} rows that {script} itself leaves out", skipped)
    if result.returncode and not failed:
        tally.check(script, f"exit status {result.returncode}")


def numeric_flags(args):
    return ["--numerics", args.numerics] + (["--backend", args.backend] if args.backend else [])


def check_models(tally, args):
    for family in ("models", "models-gguf"):
        folder = harness.need_fixtures(args, family)
        chosen, left_out = [], {}
        for path in sorted(glob.glob(os.path.join(folder, "*.expect.json"))):
            lack = unsupported(json.load(open(path)))
            if lack:
                left_out.setdefault(lack[0], []).append(lack[1])
            else:
                chosen.append(re.escape(os.path.basename(path)))
        run_checker(tally, args, "fixtures.py", "--models", folder, "--filter", f"^({'|'.join(chosen)})$", *numeric_flags(args))
        for kind, lacks in left_out.items():
            tally.skip(f"{family}: {len(lacks)} fixtures with a {kind} that is not supported yet: {', '.join(sorted(set().union(*lacks)))}", len(lacks))


def check_codecs(tally, args):
    schemes = "|".join([f"cmf_{c}" for c in CMF_CODECS] + [f"gguf_{c}" for c in GGUF_CODECS])
    run_checker(tally, args, "codecs.py", "--golden", harness.need_fixtures(args, "golden", "codecs"), "--numerics", args.numerics,
                "--filter", f"(?i)^({schemes})_(?!g128|pairs|b16)")


def check_text(tally, args):
    run_checker(tally, args, "text.py", "--golden", harness.need_fixtures(args, "golden", "text"))


def check_real(tally, args):
    harness.need_fixtures(args, "models", "real")
    model = os.path.join(args.models, REAL_MODEL)
    if not os.path.exists(model):
        harness.skip_all(f"{REAL_MODEL} is not in {args.models}: tools/demo fetches it")
    run_checker(tally, args, "fixtures.py", "--real", model, *numeric_flags(args))


# name -> (check, the programs it calls)
CHECKS = {
    "models": (check_models, ("cortiq-compile", "cortiq-run")),
    "codecs": (check_codecs, ("cortiq-bench", "cortiq-compile", "cortiq-inspect")),
    "text": (check_text, ("cortiq-inspect",)),
    "real": (check_real, ("cortiq-compile", "cortiq-run")),
}


def main():
    args = harness.arguments(__doc__, check={"choices": CHECKS, "required": True}, numerics={"choices": ["exact", "fast"], "default": "exact"},
                             backend={"default": ""}, models={"default": os.environ.get("CORTIQ_MODELS", ""), "help": "folder of real models (CORTIQ_MODELS)"})
    harness.need_fixtures(args, "check")
    check, programs = CHECKS[args.check]
    harness.need_tools(args, *programs)
    tally = harness.Tally()
    check(tally, args)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
