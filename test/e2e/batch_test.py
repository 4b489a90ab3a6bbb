#!/usr/bin/env python3
"""Sequences that are computed together: for every kind of model and in both arms, the bits of sessions of their own; and the server that
computes them so, with many clients, prompts that begin alike, and pages that run short.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

import harness
from serve_test import Server, says

# One a kind of model: attention of every sort, windows, experts, recurrent states, latent attention, skills.
MODELS = ("deepseek_v2-q4t.cmf", "deepseek_v3-f16.cmf", "gemma2-q8.cmf", "gemma3-q4tp.cmf", "granite-q4tp.cmf", "hunyuan-q8_2f.cmf", "lfm2-q8.cmf",
          "lfm2_moe-q4tp.cmf", "llama-mixed.cmf", "mistral-q4.cmf", "phi3-q4tp.cmf", "qwen2-q8_2f.cmf", "qwen2_moe-q8.cmf", "qwen3-vbit.cmf",
          "qwen3_5-q4tp.cmf", "qwen3_5_moe-q4tp.cmf", "qwen3_moe16-mxfp4.cmf", "qwen3_next-q8_2f.cmf", "skills.cmf", "masks-heads.cmf")


def check_bits(tally, args, scratch):
    for name in MODELS:
        model = os.path.join(args.fixtures, "models", name)
        if not os.path.exists(model):
            tally.skip(f"{name} is not there")
            continue
        for numerics in ("exact", "fast"):
            artifact = scratch.output(".cqa")
            compiled = harness.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact, "--numerics=" + numerics])
            why_not = harness.why_not_success(compiled)
            if not why_not:
                result = harness.run([os.path.join(args.bin, "cortiq-bench"), artifact, "--sequences", "2,17", "--prefill", "70", "--decode", "8",
                                      "--repeat", "1", "--threads", "2", "--json"])
                why_not = harness.why_not_success(result) or ("" if len(json.loads(result.stdout)["batches"]) == 2 else result.stdout)
            tally.check(f"{name}, {numerics}: 2 and 17 sequences give the bits of sessions", why_not)


def check_budget(tally, args, scratch):
    """Experts that are read as they are needed, for many sequences at once."""
    artifact = scratch.output(".cqa")
    subprocess.run([os.path.join(args.bin, "cortiq-compile"), os.path.join(args.fixtures, "models", "qwen3_moe-q4tp.cmf"), "-o", artifact], check=True,
                   stdin=subprocess.DEVNULL)
    command = [os.path.join(args.bin, "cortiq-bench"), artifact, "--sequences", "5", "--prefill", "40", "--decode", "6", "--repeat", "1"]
    memory = "1M"
    for _ in range(4):  # a refusal names the least that works for what it was about: the session's, then the batch's
        result = harness.run([*command, "--memory", memory])
        least = re.search(r"the least that works is --memory (\d+M)", result.stderr)
        if not least:
            break
        memory = least.group(1)
    tally.check(f"under a budget of {memory}, bits are those of sessions", harness.why_not_success(result))


def check_server(tally, args, scratch):
    """Greedy and seeded answers of 24 clients against those of one, with room for few; then what is known of prompts."""
    artifact = scratch.output(".cqa")
    subprocess.run([os.path.join(args.bin, "cortiq-compile"), os.path.join(args.fixtures, "models", "qwen3-q4t.cmf"), "-o", artifact], check=True,
                   stdin=subprocess.DEVNULL)
    start = "A common beginning, long enough to fill more than a page of the cache, which has sixty-four positions, with words. " * 2
    asks = [{"prompt": start + f"Then {i % 12} comes {'x' * (i % 5 * 40)}", "max_tokens": 24 + i % 7 * 12, "ignore_eos": True, "seed": i % 12,
             "temperature": 0 if i % 2 else 0.9} for i in range(48)]

    def text(server, ask):
        status, _, body = server.call("POST", "/v1/completions", ask)
        return (body["choices"][0]["text"], body["usage"]["prompt_tokens_details"]["cached_tokens"]) if status == 200 else (body, 0)

    with Server(args, artifact, "--sessions", "1") as server:
        alone = [text(server, ask)[0] for ask in asks]
        page = int(server.metrics()["cortiq_cache_page_bytes"])
        pages = int(server.metrics()["cortiq_cache_pages"])
    for sessions, cache in ((24, 0), (24, (pages + 2) * page), (3, pages * page)):
        flags = ["--cache", str(cache)] if cache else []
        with Server(args, artifact, "--sessions", str(sessions), "--queue", "64", *flags) as server:
            with concurrent.futures.ThreadPoolExecutor(24) as pool:
                together = list(pool.map(lambda ask: text(server, ask), asks))
            wrong = [i for i, (got, _) in enumerate(together) if got != alone[i]]
            label = f"{sessions} sessions, {'pages for one context and two' if cache else 'pages for all'}"
            tally.check(f"{label}: 48 answers are those of one client", "" if not wrong else f"{len(wrong)} are not, the first is {wrong[0]}")
            metrics = server.metrics()
            tally.check(f"{label}: common beginnings are computed once", "" if sum(kept for _, kept in together) > 0 else str(together[:3]))
            says(tally, f"{label}: no page is left behind", metrics["cortiq_cache_pages_used"], 0)
            if sessions == 24 and not cache:
                tally.check("several sequences are in a step", "" if metrics["cortiq_step_answers_total"] > 2 * metrics["cortiq_steps_total"] else str(metrics))
    refused = harness.run([os.path.join(args.bin, "cortiq-serve"), artifact, "--cache", "1"], timeout=60)
    tally.check("a cache of no context is refused", harness.why_not_refusal(refused))


def main():
    args = harness.arguments(__doc__)
    harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-serve")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        check_bits(tally, args, scratch)
        check_budget(tally, args, scratch)
        check_server(tally, args, scratch)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
