#!/usr/bin/env python3
"""The examples for Ray: a deployment on Ray Serve that scales over two local workers, and an offline batch with Ray Data; their answers
against cortiq-run's.
"""
import json
import os
import sys

import harness
import python_package

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RAY = os.path.join(ROOT, "build", "venv-ray", "bin", "python")
PROMPT = "Once upon a time"
PROMPTS = [f"Tale {i}. Once upon a time" for i in range(6)]


def main():
    args = harness.arguments(__doc__, ray={"default": RAY, "help": "a Python with Ray"})
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-compile", "cortiq-run")
    if not os.path.exists(args.ray) or harness.run([args.ray, "-c", "import ray"]).returncode != 0:
        harness.skip_all("Ray is not installed: tools/setup --ray installs it into build/venv-ray")
    try:
        import nanobind, numpy, scikit_build_core  # noqa: F401
    except ImportError as missing:
        harness.skip_all(f"{missing.name} is not installed: tools/setup installs it into build/venv")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        artifact, prompts = scratch.path("m.cqa"), scratch.path("prompts.jsonl")
        site = python_package.site(args, scratch, tally)
        tally.check("compile", harness.why_not_success(harness.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact])))

        def want(prompt, count):
            return json.loads(harness.run([os.path.join(args.bin, "cortiq-run"), artifact, "-p", prompt, "-n", str(count), "--temp", "0", "--json"]).stdout)

        with open(prompts, "w") as file:
            file.writelines(json.dumps({"prompt": prompt, "number": i}) + "\n" for i, prompt in enumerate(PROMPTS))
        env = dict(os.environ, CORTIQ_MODEL=artifact, RAY_USAGE_STATS_ENABLED="0", RAY_raylet_start_wait_time_s="120",
                   PYTHONPATH=os.pathsep.join([site, os.path.join(ROOT, "examples", "ray_serve")]))
        result = harness.run([args.ray, os.path.join(os.path.dirname(os.path.abspath(__file__)), "ray_check.py"), artifact, prompts, scratch.path("answers"),
                              str(harness.free_port()), PROMPT], timeout=400, env=env)
        tally.check("Ray", harness.why_not_success(result) and result.stderr[-1500:])
        if result.returncode != 0:
            return tally.finish()
        got = json.loads(result.stdout.strip().splitlines()[-1])

        def equal(label, a, b):
            tally.check(label, "" if a == b else f"{a!r} instead of {b!r}")

        serve, answer = got["serve"], want(PROMPT, 24)
        equal("two workers and a head", got["nodes"], 3)
        equal("Serve says what cortiq-run says", serve["first"], answer["tokens"])
        equal("and streams the same", serve["streamed"], serve["text"])
        equal("a conversation stays where it is", serve["keyed_replicas"], 1)
        equal("and says the same each time", serve["keyed"], [answer["tokens"]] * 4)
        equal("and computes its beginning once", serve["keyed_kept"][0] == 0 and all(kept > 0 for kept in serve["keyed_kept"][1:]), True)
        equal("load brings the second replica", serve["replicas"], 2)
        equal("no answer is another's", serve["wrong"], 0)
        equal("a body that is none is refused", serve["bad"], 400)
        rows = sorted(got["data"].get("rows", []), key=lambda row: row["number"])
        equal("Data answers every prompt", [row["prompt"] for row in rows] or got["data"], PROMPTS)
        equal("with what cortiq-run says", [row["tokens"] for row in rows], [want(prompt, 12)["tokens"] for prompt in PROMPTS])
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
