#!/usr/bin/env python3
"""cortiq-bench --perplexity and --kl: held against what the logits of cortiq-run say, of the artifact itself and of the reference
interpreter; with fixtures, against recorded logits of an independent implementation. Then what is refused.
"""
import array
import json
import math
import os
import sys

import harness

TEXT = "The heron at the inner re-entrant waited.\n\nIn the eastern marshes 12 herons are seen; on the other side 34, then none <|im_end|> at all."
CONTEXT = 24
SAME = 1e-9       # the same logits, summed in another order
REFERENCE = 1e-4  # of the mean loss: f32 sums of the exact arm in another order
RECORDED = 5e-4   # largest difference of a logit, as the fixtures promise it


def load(path):
    values = array.array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


def log_softmax(row):
    top = max(row)
    total = math.log(math.fsum(math.exp(v - top) for v in row)) + top
    return [v - total for v in row]


class Bench:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch
        self.text = scratch.path("text.txt")
        with open(self.text, "w") as out:
            out.write(TEXT)

    def tool(self, name, *flags):
        result = harness.run([os.path.join(self.args.bin, name), *flags], timeout=600)
        why_not = harness.why_not_success(result)
        if why_not:
            raise RuntimeError(f"{name}: {why_not}")
        return result.stdout

    def compile(self, model, numerics):
        out = self.scratch.output(".cqa")
        self.tool("cortiq-compile", model, "-o", out, "--numerics=" + numerics)
        return out

    def measure(self, file, *flags, context=CONTEXT):
        return json.loads(self.tool("cortiq-bench", file, "--perplexity", self.text, "--context", str(context), "--json", *flags))

    def ids(self, model):
        texts = self.scratch.path("texts.json")
        with open(texts, "w") as out:
            json.dump([TEXT], out)
        return json.loads(self.tool("cortiq-inspect", "--tokenize", model, "--no-parse-special", "--input", texts))[0]

    def rows(self, file, window, *flags):
        """The logits of every position of `window`."""
        out = self.scratch.output(".f32")
        self.tool("cortiq-run", file, *flags, "--tokens", ",".join(map(str, window)), "-n", "0", "--logits", out)
        values = load(out)
        vocab = len(values) // len(window)
        return [values[i * vocab:(i + 1) * vocab] for i in range(len(window))]

    def predictions(self, file, windows, *flags):
        """(ln p of every id, id that follows) of all scored positions."""
        out = []
        for window in windows:
            rows = self.rows(file, window, *flags)
            out += [(log_softmax(rows[at]), window[at + 1]) for at in range(len(window) // 2, len(window) - 1)]
        return out


def windows_of(ids, begin=None):
    windows = [ids[at:at + CONTEXT] for at in range(0, len(ids) - CONTEXT + 1, CONTEXT)]
    return windows if begin is None else [[begin] + window[1:] for window in windows]


def mean_loss(predictions):
    return -sum(p[token] for p, token in predictions) / len(predictions)


def divergences(reference, model):
    return [math.fsum(math.exp(r) * (r - m) for r, m in zip(p, q)) for (p, _), (q, _) in zip(reference, model)]


def percentile(values, share):
    values, at = sorted(values), share * (len(values) - 1)
    low = int(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


def near(tally, label, got, want, bound):
    tally.check(label, None if abs(got - want) <= bound * max(1, abs(want)) else f"{got}, expected {want}")


def check_model(tally, bench, name, model, begin=None):
    """Both arms' figures from their logits, the exact arm's from the reference's too, and the divergence between the arms."""
    ids = ([] if begin is None else [begin]) + bench.ids(model)
    windows = windows_of(ids, begin)
    if len(windows) < 2:
        raise RuntimeError(f"{len(ids)} tokens are too few for this test")
    exact, fast = bench.compile(model, "exact"), bench.compile(model, "fast")
    want = {"exact": bench.predictions(exact, windows), "fast": bench.predictions(fast, windows)}
    for numerics, file in (("exact", exact), ("fast", fast)):
        got = bench.measure(file)
        near(tally, f"{name} {numerics}: perplexity", math.log(got["perplexity"]), mean_loss(want[numerics]), SAME)
        counts = (got["numerics"], got["windows"], got["tokens"], got["context"])
        expected = (numerics, len(windows), len(want[numerics]), CONTEXT)
        tally.check(f"{name} {numerics}: counts", None if counts == expected else f"{counts}, expected {expected}")
    near(tally, f"{name}: reference", mean_loss(want["exact"]), mean_loss(bench.predictions(model, windows, "--backend=reference")), REFERENCE)
    kl = divergences(want["exact"], want["fast"])
    same = sum(p.index(max(p)) == q.index(max(q)) for (p, _), (q, _) in zip(want["exact"], want["fast"])) / len(kl)
    # An artifact as reference, a model that is compiled for it, and the word that stands for the model itself.
    for flags in ((fast, "--kl", exact), (fast, "--kl", model), (model, "--kl", "exact")):
        got = bench.measure(*flags)
        label = f"{name} --kl {'exact' if flags[2] == 'exact' else os.path.splitext(flags[2])[1]}"
        near(tally, label + ": mean", got["kl"]["mean"], sum(kl) / len(kl), 1e-8)
        near(tally, label + ": 99 %", got["kl"]["p99"], percentile(kl, 0.99), 1e-8)
        near(tally, label + ": max", got["kl"]["max"], max(kl), 1e-8)
        near(tally, label + ": top-1", got["kl"]["top1_agreement"], same, 1e-12)
        near(tally, label + ": reference", got["reference"]["mean_loss"], mean_loss(want["exact"]), SAME)
        near(tally, label + ": ratio", got["perplexity_ratio"], math.exp(mean_loss(want["fast"]) - mean_loss(want["exact"])), 1e-7)
    return exact


def check_tiny(tally, bench):
    models = harness.tiny_models()
    case = {c.name: c for c in models.CASES}
    model = models.write(case["llama-f32.cmf"], bench.scratch.folder)
    exact = check_model(tally, bench, "llama-f32.cmf", model)
    # A tokenizer that begins every text with a token.
    plain = models.tiny_tokenizer.gguf_metadata
    models.tiny_tokenizer.gguf_metadata = lambda: {**plain(), "tokenizer.ggml.bos_token_id": models.tiny_tokenizer.EOS, "tokenizer.ggml.add_bos_token": True}
    try:
        with_begin = models.write(next(c for c in models.CASES if c.container == "gguf"), bench.scratch.folder)
    finally:
        models.tiny_tokenizer.gguf_metadata = plain
    check_model(tally, bench, "begin token", with_begin, begin=models.tiny_tokenizer.EOS)
    return model, exact


def check_fixture(tally, bench, folder, name):
    """The recorded logits belong to the prompt's last four positions, three of which predict a token of it."""
    path = os.path.join(folder, name)
    expect = json.load(open(os.path.splitext(path)[0] + ".expect.json"))
    ids, recorded = expect["prompt_ids"], load(os.path.splitext(path)[0] + ".logits.f32.bin")
    vocab, first = expect["vocab"], expect["logits_file"]["positions"][0]
    artifact = bench.compile(path, "exact")
    rows = bench.rows(artifact, ids)
    for i in range(len(ids) - first):
        row = recorded[i * vocab:(i + 1) * vocab]
        worst = max(abs(a - b) for a, b in zip(rows[first + i], row))
        tally.check(f"{name}: position {first + i}", None if worst <= RECORDED else f"a logit differs by {worst}")
        rows[first + i] = row
    with open(bench.text, "w") as out:
        out.write(expect["prompt_text"])
    got = bench.measure(artifact, context=len(ids))
    scored = range(len(ids) // 2, len(ids) - 1)
    want = -sum(log_softmax(rows[at])[ids[at + 1]] for at in scored) / len(scored)
    near(tally, f"{name}: perplexity", got["mean_loss"], want, REFERENCE)


def check_refusals(tally, bench, model, artifact):
    short, empty = bench.scratch.path("short.txt"), bench.scratch.path("empty.txt")
    for path, text in ((short, "heron"), (empty, "")):
        with open(path, "w") as out:
            out.write(text)
    binary = bench.scratch.path("binary.txt")
    with open(binary, "wb") as out:
        out.write(bytes(range(256)) * 4)
    text, missing = bench.text, bench.scratch.path("missing")
    damaged = bench.scratch.path("damaged.cqa")
    with open(artifact, "rb") as source, open(damaged, "wb") as out:
        out.write(source.read()[:-4096])
    rows = [
        ("a text that is too short", "fewer than one context of 24", artifact, short, "--context", "24"),
        ("the name of a text that is too short", "short.txt", artifact, short, "--context", "24"),
        ("what is no text", "binary.txt' is not UTF-8", artifact, binary),
        ("an empty text", "0 tokens", artifact, empty),
        ("no text", "does not exist", artifact, missing),
        ("a folder", "directory", artifact, bench.scratch.folder),
        ("no model", "does not exist", missing, text),
        ("a text as model", "magic", text, text),
        ("a damaged artifact", "damaged.cqa", damaged, text),
        ("no reference", "does not exist", artifact, text, "--kl", missing),
        ("a context beyond the artifact's", "--max-context", artifact, text, "--context", "100000"),
        ("a context of three tokens", "--context", artifact, text, "--context", "3"),
        ("exact of an artifact", "is an artifact", artifact, text, "--kl", "exact"),
        ("numerics of an artifact", "compiled already", artifact, text, "--numerics", "fast"),
        ("a target that the artifact does not hold", "it holds code for", artifact, text, "--target", "nothing"),
        ("an unknown target", "target", model, text, "--target", "nothing"),
        ("an option of another mode", "--prefill", artifact, text, "--prefill", "8"),
    ]
    for label, words, file, source, *flags in rows:
        result = harness.run([os.path.join(bench.args.bin, "cortiq-bench"), file, "--perplexity", source, *flags])
        why_not = harness.why_not_refusal(result)
        tally.check(f"refused: {label}", why_not or (None if words in result.stderr else f"{result.stderr!r} does not say {words!r}"))
    result = harness.run([os.path.join(bench.args.bin, "cortiq-bench"), artifact, "--kl", artifact])
    tally.check("refused: --kl without --perplexity", harness.why_not_refusal(result))


def check_vocabulary(tally, bench, folder, artifact):
    result = harness.run([os.path.join(bench.args.bin, "cortiq-bench"), artifact, "--perplexity", bench.text, "--context", "24",
                          "--kl", os.path.join(folder, "llama-q8.cmf")])
    tally.check("refused: another vocabulary", harness.why_not_refusal(result) or (None if "vocabulary of 1024" in result.stderr else result.stderr))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-inspect", "cortiq-run")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        bench = Bench(args, scratch)
        try:
            model, artifact = check_tiny(tally, bench)
            check_refusals(tally, bench, model, artifact)
            folder = os.path.join(args.fixtures, "models")
            if args.fixtures and os.path.isdir(folder):
                check_vocabulary(tally, bench, folder, artifact)
                check_fixture(tally, bench, folder, "llama-q8.cmf")
                check_fixture(tally, bench, folder, "qwen3-q4tp.cmf")
                check_fixture(tally, bench, os.path.join(args.fixtures, "models-gguf"), "llama-q4_k_m.gguf")
            else:
                tally.skip("recorded logits: CORTIQ_FIXTURES does not name a folder with models", 3)
        except (RuntimeError, OSError, ValueError) as error:
            tally.check("the test itself", str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
