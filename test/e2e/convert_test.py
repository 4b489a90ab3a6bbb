#!/usr/bin/env python3
"""cortiq-convert as a user calls it: what CMF can hold keeps its values, which the logits show; the rest changes on request
only; what cannot be converted is refused in one sentence and leaves no file.
"""
import array
import glob
import json
import math
import os
import resource
import signal
import struct
import subprocess
import sys
import time

import harness

FAMILIES = ("llama", "qwen2", "qwen3")
KEPT = {"F32", "F16", "BF16", "Q4_0", "Q5_0", "Q8_0", "IQ4_NL", "TQ1_0", "TQ2_0", "Q2_0", "PTQ1_0", "STQ1_0", "MXFP4", "Q1_0"}
# Root of squared error over squares that Gaussian rows leave, with room for outliers; 0: exact on the f16 fixture.
ERROR_BOUNDS = {"f32": 0, "f16": 0, "bf16": 0.003, "q8_row": 0.02, "q8_2f": 0.02, "q4_block": 0.15, "q4_tiled": 0.15, "q4tp": 0.15,
                "vbit": 0.2, "vbit_ro": 0.2, "mxfp4": 0.2, "q2tp": 0.6, "q1t": 0.6, "q1": 0.75, "q1s": 0.75, "q1g": 0.75}
TOKENS = [5, 17, 250, 99, 3, 42, 128, 7]
MEMORY_BUDGET = 64 << 20       # private memory of the conversion below, with its threads' stacks
SAFETENSORS = {"f32": "F32", "f16": "F16", "bf16": "BF16"}
LARGE_MATRIX = (60000, 1024)   # 234 MiB of f32, far above the budget


def ternary(rng):
    """A byte of five digits 0, 1, 2."""
    return bytes([-(-rng.randrange(243) * 256 // 243)])


def digits(rng, count, alphabet):
    """Two-bit codes, four a byte."""
    return bytes(sum(rng.choice(alphabet) << 2 * k for k in range(4)) for _ in range(count // 4))


def scale(rng, spread):
    return struct.pack("<e", spread * rng.uniform(0.5, 1.5))


EXACT_APART = 2e-6  # of the largest logit: the same products, summed in another order
FAST_APART = 0.03   # of the largest logit: what activations of 8 bits may cost, in one of the files only


class Scheme:
    """A scheme that both containers hold: its type id, weights a block, what makes one, and how far the logits of the two files may be apart
    when compiled for each arm. 0: the same bits. What becomes vbit_ro is not: that codec is summed along a row, sixteen weights side by side, where
    the others sum rows side by side, and has no arm of 8-bit activations.
    """

    def __init__(self, code, weights, block, exact=0.0, fast=0.0, marks=None):
        self.code, self.weights, self.block, self.exact, self.fast, self.marks = code, weights, block, exact, fast, marks or {}


SCHEMES = {
    "f32": Scheme(0, 1, None), "f16": Scheme(1, 1, None), "bf16": Scheme(30, 1, None),
    "q4_0": Scheme(2, 32, None),
    "q5_0": Scheme(6, 32, None, EXACT_APART, FAST_APART), "iq4_nl": Scheme(20, 32, None, EXACT_APART, FAST_APART),
    "q8_0": Scheme(8, 32, lambda rng, s: scale(rng, s / 73) + rng.randbytes(32).replace(b"\x80", b"\x81"), EXACT_APART, FAST_APART),
    "tq1_0": Scheme(34, 256, lambda rng, s: b"".join(ternary(rng) for _ in range(52)) + scale(rng, s)),
    "tq2_0": Scheme(35, 256, lambda rng, s: digits(rng, 256, (0, 1, 2)) + scale(rng, s)),
    "tq2_0_two": Scheme(35, 256, lambda rng, s: digits(rng, 256, (0, 1, 2, 3)) + scale(rng, s), EXACT_APART, FAST_APART),
    "q2_0": Scheme(42, 64, lambda rng, s: scale(rng, s) + digits(rng, 64, (0, 1, 2))),
    "q2_0_two": Scheme(42, 64, lambda rng, s: scale(rng, s) + digits(rng, 64, (0, 1, 2, 3)), EXACT_APART, FAST_APART),
    "q2_0_g128": Scheme(42, 128, lambda rng, s: scale(rng, s) + digits(rng, 128, (0, 1, 2))),
    "stq1_0": Scheme(42, 256, lambda rng, s: rng.randbytes(40) + scale(rng, s)),
    "ptq1_0": Scheme(143, 128, lambda rng, s: b"".join(ternary(rng) for _ in range(26)) + scale(rng, s), marks={"prism.version": 1}),
    "mxfp4": Scheme(39, 32, lambda rng, s: bytes([127 + round(math.log2(s / 3))]) + rng.randbytes(16)),
    "q1_0": Scheme(41, 128, lambda rng, s: scale(rng, s) + rng.randbytes(16)),
}


def load(path):
    values = array.array("f")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


class Convert:
    def __init__(self, args, scratch):
        self.args, self.scratch = args, scratch

    def call(self, source, *flags, **options):
        out = self.scratch.output(".cmf")
        return harness.run([os.path.join(self.args.bin, "cortiq-convert"), source, "-o", out, *flags], timeout=600, **options), out

    def must(self, source, *flags, **options):
        result, out = self.call(source, "--json", *flags, **options)
        why_not = harness.why_not_success(result)
        if why_not:
            raise RuntimeError(why_not)
        return json.loads(result.stdout), out

    def logits(self, model, tokens):
        """The bytes of the reference's logits."""
        out = self.scratch.output(".f32")
        result = harness.run([os.path.join(self.args.bin, "cortiq-run"), model, "--backend=reference", "--tokens",
                              ",".join(map(str, tokens)), "-n", "0", "--logits", out], timeout=600)
        why_not = harness.why_not_success(result)
        if why_not:
            raise RuntimeError(why_not)
        with open(out, "rb") as file:
            return file.read()

    def compiled_logits(self, model, numerics):
        artifact = self.scratch.output(".cqa")
        why_not = harness.why_not_success(harness.run([os.path.join(self.args.bin, "cortiq-compile"), model, "-o", artifact, "--numerics=" + numerics]))
        if why_not:
            raise RuntimeError(why_not)
        out = self.scratch.output(".f32")
        why_not = harness.why_not_success(harness.run([os.path.join(self.args.bin, "cortiq-run"), artifact, "--tokens", ",".join(map(str, TOKENS)),
                                                       "-n", "0", "--logits", out]))
        if why_not:
            raise RuntimeError(why_not)
        with open(out, "rb") as file:
            return file.read()

    def token_ids(self, model):
        texts = self.scratch.path("texts.json")
        with open(texts, "w") as out:
            json.dump(["the heron at the inner re-entrant", "Zürich\n\n  12 34", ""], out)
        result = harness.run([os.path.join(self.args.bin, "cortiq-inspect"), "--tokenize", model, "--input", texts])
        why_not = harness.why_not_success(result)
        if why_not:
            raise RuntimeError(why_not)
        return result.stdout


def check_same_model(tally, convert, label, source, result, tokens):
    """Two files of one model: equal logits, bit for bit, and equal token ids."""
    tally.check(f"{label}: same logits", None if convert.logits(source, tokens) == convert.logits(result, tokens) else "they differ")
    tally.check(f"{label}: same token ids", None if convert.token_ids(source) == convert.token_ids(result) else "they differ")


def check_kept(tally, convert, label, source, tokens):
    summary, out = convert.must(source)
    # Only the decay is another number in CMF: ln(-ssm_a).
    changed = [t["name"] for t in summary["tensors"] if not t["kept"] and not t["name"].endswith(".linear_attn.A_log")]
    tally.check(f"{label}: all values kept", f"changed: {changed[:3]}" if changed else None)
    check_same_model(tally, convert, label, source, out, tokens)
    tally.note(f"{label:28} {' '.join(sorted({t['to'] for t in summary['tensors']}))}")


def check_fixtures(tally, args, convert):
    folder = os.path.join(args.fixtures, "models-gguf")
    if not args.fixtures or not os.path.exists(folder):
        tally.skip("CORTIQ_FIXTURES does not name a folder with models-gguf")
        return
    for path in sorted(glob.glob(os.path.join(folder, "*.expect.json"))):
        expect = json.load(open(path))
        if expect["family"] not in FAMILIES or "mixtral" in path:
            continue
        label = os.path.basename(path)[:-len(".expect.json")]
        source = os.path.join(folder, expect["files"][0] if "files" in expect else label + ".gguf")
        if set(expect["dtypes"]) <= KEPT:
            check_kept(tally, convert, label, source, expect["prompt_ids"])
            continue
        result, out = convert.call(source)
        tally.check(f"{label}: refused without --quant", harness.why_not_refusal(result, out))
        lacking = [d for d in expect["dtypes"] if d not in KEPT and d not in result.stderr]
        tally.check(f"{label}: names what has no codec", f"not {lacking}" if lacking or "--quant" not in result.stderr else None)
        summary, out = convert.must(source, "--quant", "q8_2f")
        check_requantized(tally, convert, label, summary, source, out, expect["prompt_ids"])


def check_bad_fixtures(tally, args, convert):
    folder = os.path.join(args.fixtures, "models-gguf", "bad")
    if not args.fixtures or not os.path.exists(folder):
        tally.skip("CORTIQ_FIXTURES does not name a folder with models-gguf/bad")
        return
    for row in json.load(open(os.path.join(folder, "manifest.json"))):
        result, out = convert.call(os.path.join(folder, row["file"]), "--quant", "q8_2f")
        lacking = [w for w in row.get("must_name", []) if w not in result.stderr] if row["file"] == "expert_count_mismatch.gguf" else []
        tally.check(f"refuses {row['file']}", harness.why_not_refusal(result, out) or (f"not named: {lacking}: {result.stderr}" if lacking else None))


def check_requantized(tally, convert, label, summary, source, out, tokens):
    worst = max(t["relative_error"] for t in summary["tensors"])
    wrong = [t["name"] for t in summary["tensors"] if not t["kept"] and t["to"] != "q8_2f"]
    tally.check(f"{label}: requantized to q8_2f", f"{wrong[:3]} not, error {worst}" if wrong or not 0 < worst < ERROR_BOUNDS["q8_2f"] else None)
    got, want = array.array("f", convert.logits(out, tokens)), array.array("f", convert.logits(source, tokens))
    distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(got, want)) / sum(b * b for b in want))
    tally.check(f"{label}: logits near", None if distance < 0.1 else f"relative RMS {distance:.3f}")


def check_tiny_gguf(tally, convert):
    models = harness.tiny_models()
    for case in models.CASES:
        if case.container != "gguf" or not {c.upper() for c in case.codecs} <= KEPT:
            continue
        source = models.write(case, convert.scratch.folder)
        if "q8_0" in case.codecs:
            # Random levels include -128, which vbit_ro has no code for.
            result, out = convert.call(source)
            tally.check(f"{case.name}: level -128 refused", harness.why_not_refusal(result, out))
            source = write_without_lowest_level(models, case, convert.scratch.folder)
        check_kept(tally, convert, case.name, source, TOKENS)


def check_round_trips(tally, convert):
    """GGUF to CMF to artifact gives what GGUF to artifact gives: the same bits in the reference, and by the scheme's bound when compiled."""
    models = harness.tiny_models()
    metadata = models.tiny_tokenizer.gguf_metadata
    for name, scheme in SCHEMES.items():
        if scheme.block:
            models.packing.GGUF[name] = (scheme.code, scheme.weights, models.packing.blocks(scheme.weights, scheme.block))
        models.tiny_tokenizer.gguf_metadata = lambda: dict(metadata(), **scheme.marks)
        source = models.write(models.Case("llama", "gguf", (name,), models.BY256, label="trip-" + name), convert.scratch.folder)
        models.tiny_tokenizer.gguf_metadata = metadata
        summary, out = convert.must(source)
        changed = [t["name"] for t in summary["tensors"] if not t["kept"]]
        tally.check(f"{name}: all values kept", f"changed: {changed[:3]}" if changed else None)
        check_same_model(tally, convert, name, source, out, TOKENS)
        for numerics, bound in (("exact", scheme.exact), ("fast", scheme.fast)):
            want, got = (array.array("f", convert.compiled_logits(model, numerics)) for model in (source, out))
            distance = max(abs(a - b) for a, b in zip(got, want)) / max(abs(v) for v in want)
            tally.check(f"{name}: {numerics}", None if distance <= bound else f"{distance:.1e} of the largest logit apart")
        tally.note(f"{name:28} {' '.join(sorted({t['to'] for t in summary['tensors']}))}")


def write_without_lowest_level(models, case, folder):
    row = models.packing.GGUF["q8_0"]
    models.packing.GGUF["q8_0"] = (*row[:2], lambda *shape: row[2](*shape).replace(b"\x80", b"\x81"))
    try:
        return models.write(case, folder)
    finally:
        models.packing.GGUF["q8_0"] = row


def write_safetensors(path, rows):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, codec, shape, payload in rows:
        header[name] = {"dtype": SAFETENSORS[codec], "shape": list(shape), "data_offsets": [len(data), len(data) + len(payload)]}
        data += payload
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text + data)


def write_checkpoint(folder, case, shards):
    """The checkpoint folder of a tiny model."""
    models = harness.tiny_models()
    s, text = case.shape, models.tiny_tokenizer
    os.makedirs(folder)
    rows = list(models.tensors(case))
    if shards == 1:
        write_safetensors(os.path.join(folder, "model.safetensors"), rows)
    else:
        names = [f"model-{i + 1:05}-of-{shards:05}.safetensors" for i in range(shards)]
        for i, name in enumerate(names):
            write_safetensors(os.path.join(folder, name), rows[i::shards])
        write_json(folder, "model.safetensors.index.json", {"weight_map": {row[0]: names[i % shards] for i, row in enumerate(rows)}})
    write_json(folder, "config.json", {
        "model_type": case.arch, "hidden_size": s.hidden, "intermediate_size": s.ffn, "num_hidden_layers": s.layers,
        "num_attention_heads": s.heads, "num_key_value_heads": s.kv_heads, "head_dim": s.head_dim, "vocab_size": text.VOCAB,
        "rms_norm_eps": models.NORM_EPS, "rope_theta": models.ROPE_BASE, "max_position_embeddings": models.CONTEXT,
        "tie_word_embeddings": case.tied, "hidden_act": "silu"})
    write_json(folder, "generation_config.json", {"eos_token_id": [text.EOS, text.IM_END]})
    write_json(folder, "tokenizer_config.json", {"chat_template": text.TEMPLATE, "eos_token": "<|im_end|>"})
    with open(os.path.join(folder, "tokenizer.json"), "wb") as out:
        out.write(text.tokenizer_json())
    return folder


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w") as out:
        json.dump(value, out)


def check_checkpoints(tally, convert):
    """A checkpoint folder and the CMF of the same tiny model."""
    models = harness.tiny_models()
    for turn, (arch, codec, tied) in enumerate([("llama", "f32", False), ("qwen2", "f16", False), ("qwen3", "bf16", True)]):
        case = models.Case(arch, "cmf", (codec,), models.ODD, tied=tied, label=f"checkpoint-{codec}")
        folder = write_checkpoint(convert.scratch.path(f"{arch}-folder"), case, shards=1 + turn)
        summary, out = convert.must(folder)
        tally.check(f"{arch} folder: kept", None if all(t["kept"] for t in summary["tensors"]) else "values changed")
        check_same_model(tally, convert, f"{arch} folder", models.write(case, convert.scratch.folder), out, TOKENS)


def check_codecs(tally, convert):
    """Every encoder on one model, the choice by name, and a width that most codecs cannot have."""
    models = harness.tiny_models()
    case = models.Case("llama", "gguf", ("f16",), models.BY256, label="to-encode")
    source = models.write(case, convert.scratch.folder)
    for codec, bound in ERROR_BOUNDS.items():
        summary, _ = convert.must(source, "--quant", codec)
        matrices = [t for t in summary["tensors"] if t["from"] == "f16"]
        error = max(t["relative_error"] for t in matrices)
        right = all(t["to"] == codec for t in matrices) and error <= bound and (bound == 0 or error > 0)
        tally.check(f"--quant {codec}", None if right else f"error {error:.4f}, bound {bound}, became {matrices[0]['to']}")
    summary, _ = convert.must(source, "--quant", "q4tp", "--tensor-quant", "*.mlp.*=q8_row", "--tensor-quant", "*.down_proj.*=f16",
                              "--tensor-quant", "lm_head.weight=cmf:q8_2f")
    to = {t["name"]: t["to"] for t in summary["tensors"]}
    wanted = {"lm_head.weight": "q8_2f", "model.layers.0.mlp.up_proj.weight": "q8_row", "model.layers.1.mlp.down_proj.weight": "f16",
              "model.layers.0.self_attn.q_proj.weight": "q4tp", "model.norm.weight": "f32"}
    wrong = {name: to[name] for name in wanted if to[name] != wanted[name]}
    tally.check("--tensor-quant", f"became {wrong}" if wrong else None)
    odd = models.write(models.Case("llama", "gguf", ("f16",), models.ODD, label="odd-width"), convert.scratch.folder)
    summary, _ = convert.must(odd, "--quant", "q4tp")
    tally.check("a width that does not suit", None if {t["to"] for t in summary["tensors"]} == {"q8_2f", "f32"} and summary["warnings"] else "not q8_2f")
    first, second = (open(convert.must(source, "--quant", "q4tp", "-j", j)[1], "rb").read() for j in "13")
    tally.check("same bytes whatever the threads", None if first == second else "they differ")


def check_refusals(tally, convert):
    models = harness.tiny_models()
    scratch = convert.scratch
    gguf = models.write(models.Case("llama", "gguf", ("f16",), models.ODD, label="sound"), scratch.folder)
    cmf = models.write(models.Case("llama", "cmf", ("f16",), models.ODD, label="sound"), scratch.folder)
    plain = models.Case("llama", "cmf", ("f16",), models.ODD, label="folder")

    def folder(name, shards=1, **config):
        path = write_checkpoint(scratch.path(name), plain, shards)
        write_json(path, "config.json", dict(json.load(open(os.path.join(path, "config.json"))), **config))
        return path

    def damaged(name, change, file="model.safetensors", shards=1):
        path = os.path.join(folder(name, shards), file)
        raw = open(path, "rb").read()
        open(path, "wb").write(change(raw))
        return os.path.dirname(path)

    def templated(name, value):
        path = folder("template-" + name)
        write_json(path, "tokenizer_config.json", {"chat_template": value})
        return path

    head = struct.unpack("<Q", open(os.path.join(folder("whole"), "model.safetensors"), "rb").read(8))[0]
    truncated = scratch.path("truncated.gguf")
    open(truncated, "wb").write(open(gguf, "rb").read()[:-4096])
    renamed = scratch.path("renamed.gguf")
    open(renamed, "wb").write(open(gguf, "rb").read().replace(b"\5\0\0\0\0\0\0\0llama", b"\5\0\0\0\0\0\0\0lambo"))
    for label, word, source, *flags in [
        ("no input", "missing.gguf", scratch.path("missing.gguf")),
        ("a CMF", "already", cmf),
        ("a truncated GGUF", "truncated.gguf", truncated),
        ("an unknown architecture", "lambo", renamed),
        ("an unknown codec", "q4_k", gguf, "--quant", "q4_k"),
        ("a pattern without codec", "PATTERN=CODEC", gguf, "--tensor-quant", "lm_head.weight"),
        ("a pattern that matches nothing", "nothing*", gguf, "--tensor-quant", "nothing*=f16"),
        ("an unknown model type", "mamba", folder("type", model_type="mamba")),
        ("an unknown rope type", "dynamic", folder("rope", rope_scaling={"type": "dynamic", "factor": 2.0})),
        ("an unknown rope type without factor", "'foo'", folder("rope-foo", rope_scaling={"rope_type": "foo"})),
        ("a chat template that is a number", "chat_template", templated("number", 7)),
        ("a quantized checkpoint", "quantization_config", folder("quantized", quantization_config={"quant_method": "gptq"})),
        ("a size that disagrees", "gate_proj", folder("size", intermediate_size=100)),
        ("a layer too many", "model.layers.2.", folder("layers", num_hidden_layers=3)),
        ("a layer too few", "no place", folder("few", num_hidden_layers=1)),
        ("truncated safetensors", "model.safetensors", damaged("cut", lambda raw: raw[:-2])),
        ("safetensors with an absurd header", "header", damaged("absurd", lambda raw: b"\xff" * 8 + raw[8:])),
        ("safetensors with broken JSON", "JSON", damaged("json", lambda raw: raw[:8] + b"[" + raw[9:])),
        ("overlapping tensors", "overlaps", damaged("overlap", lambda raw: overlapping(raw, head))),
        ("a missing shard", "model-00002-of-00002", without(folder("shard", shards=2), "model-00002-of-00002.safetensors")),
        ("an index that leaves the folder", "not the name of a file", damaged(
            "escape", lambda raw: raw.replace(b'"model-00001', b'"../model-00001'), "model.safetensors.index.json", shards=2)),
        ("no tokenizer", "tokenizer.json", without(folder("tokenizer"), "tokenizer.json")),
        ("no config", "config.json", without(folder("config"), "config.json")),
    ]:
        result, out = convert.call(source, *flags)
        why_not = harness.why_not_refusal(result, out)
        if not why_not and word not in result.stderr:
            why_not = f"the sentence does not name {word!r}: {result.stderr.strip()}"
        tally.check(f"refuses {label}", why_not)
    check_words(tally, convert, gguf, templated)
    result = harness.run([os.path.join(convert.args.bin, "cortiq-convert"), gguf, "-o", gguf])
    tally.check("refuses to overwrite its input", harness.why_not_refusal(result))
    tally.check("the input is still there", None if convert.logits(gguf, TOKENS) else "no logits")


def check_words(tally, convert, gguf, templated):
    """How notes and sentences are worded."""
    summary, _ = convert.must(gguf, "--quant", "q1g")
    said = [w for w in summary["warnings"] if "becomes q8_2f" in w]
    tally.check("a width that does not suit, in words", None if said and all("becomes q8_2f instead of q1g: a q1g tensor of" in w for w in said) else f"{said[:1]}")
    summary, _ = convert.must(templated("others", [{"name": "tool_use", "template": "x"}]))
    tally.check("a list of templates without default", None if any("default" in w for w in summary["warnings"]) else f"{summary['warnings']}")
    summary, _ = convert.must(templated("default", [{"name": "tool_use", "template": "x"}, {"name": "default", "template": "y"}]))
    tally.check("a list of templates", f"{summary['warnings']}" if summary["warnings"] else None)
    wrong = convert.scratch.path("wrong-type.gguf")
    key = b"llama.block_count" + struct.pack("<I", 4)
    raw = open(gguf, "rb").read()
    open(wrong, "wb").write(raw.replace(key, key[:-4] + struct.pack("<I", 6)))
    result, out = convert.call(wrong)
    repeated = result.stderr.count("wrong-type.gguf")
    tally.check("a key of a wrong type", harness.why_not_refusal(result, out) or (None if key in raw and repeated == 1 else f"{result.stderr}"))
    result = harness.run([os.path.join(convert.args.bin, "cortiq-convert"), gguf, "-o", convert.scratch.path("z.gguf")])
    tally.check("an ending of another format", harness.why_not_refusal(result, convert.scratch.path("z.gguf")))
    name = os.path.join(os.fsencode(convert.scratch.folder), b"z\xff.cmf")
    result = subprocess.run([os.path.join(convert.args.bin, "cortiq-convert"), gguf, "-o", name], capture_output=True)
    tally.check("a name that is no text", None if result.returncode == 0 and b"z\\xff.cmf" in result.stdout else f"{result.stdout}")


def overlapping(raw, head):
    """The same file with the second tensor's bytes on those of the first of equal size."""
    header = json.loads(raw[8:8 + head])
    first, second = "model.layers.0.self_attn.k_proj.weight", "model.layers.0.self_attn.v_proj.weight"
    header[second]["data_offsets"] = header[first]["data_offsets"]
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + raw[8 + head:]


def without(folder, name):
    os.remove(os.path.join(folder, name))
    return folder


def write_large(convert):
    """A model with a matrix several times as large as the memory that the program may have: its path, and the bytes of its weights."""
    harness.tiny_models()
    import containers
    rows, cols = LARGE_MATRIX
    path = convert.scratch.path("large.gguf")
    a = "llama."
    metadata = {"general.architecture": "llama", a + "block_count": 1, a + "context_length": 64, a + "embedding_length": cols,
                a + "feed_forward_length": 32, a + "attention.head_count": 1, a + "attention.layer_norm_rms_epsilon": 1e-5,
                a + "attention.key_length": 32, a + "attention.value_length": 32, a + "rope.dimension_count": 32}
    shapes = [("token_embd.weight", (rows, cols)), ("output_norm.weight", (cols,)), ("blk.0.attn_norm.weight", (cols,)),
              ("blk.0.ffn_norm.weight", (cols,)), ("blk.0.attn_q.weight", (32, cols)), ("blk.0.attn_k.weight", (32, cols)),
              ("blk.0.attn_v.weight", (32, cols)), ("blk.0.attn_output.weight", (cols, 32)), ("blk.0.ffn_gate.weight", (32, cols)),
              ("blk.0.ffn_up.weight", (32, cols)), ("blk.0.ffn_down.weight", (cols, 32))]
    # The weights are a hole of zeros; only the table of tensors is written.
    head = bytearray(struct.pack("<4sIQQ", b"GGUF", 3, len(shapes), len(metadata)))
    for key, value in metadata.items():
        kind, raw = containers.gguf_value(value)
        head += containers.gguf_string(key) + struct.pack("<I", kind) + raw
    size = 0
    for name, shape in shapes:
        head += containers.gguf_string(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), 0, size)
        size += 4 * math.prod(shape)
    with open(path, "wb") as out:
        out.write(head.ljust(containers.aligned(len(head), 32), b"\0"))
        out.truncate(containers.aligned(len(head), 32) + size)
    return path, size


def check_memory(tally, convert):
    path, size = write_large(convert)
    limit = lambda: resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BUDGET, MEMORY_BUDGET))
    for codec in ("q4_tiled", "q8_2f", "q1s"):
        result, out = convert.call(path, "--quant", codec, "-j", "2", preexec_fn=limit)
        tally.check(f"{size >> 20} MiB to {codec} in {MEMORY_BUDGET >> 20} MiB of memory", harness.why_not_success(result))
        if os.path.exists(out):
            os.remove(out)


def leftovers(convert, out):
    """Files beside `out` whose names begin with its own."""
    return sorted(n for n in os.listdir(convert.scratch.folder) if n.startswith(os.path.basename(out)[:-len(".cmf")]))


def interrupt(convert, command, out, number):
    """Ends a run with a signal while it writes; its exit status."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while not any(".part-" in n for n in leftovers(convert, out)) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    process.send_signal(number)
    return process.wait(60)


def check_interrupted(tally, convert):
    """However a run ends, nothing of it stays but a finished result."""
    path, _ = write_large(convert)
    for label, *flags in (("one file",), ("shards", "--shard-size", "4M")):
        out = convert.scratch.output(".cmf")
        command = [os.path.join(convert.args.bin, "cortiq-convert"), path, "-o", out, "--quant", "q4_tiled", "-j", "1", *flags]
        for number in (signal.SIGTERM, signal.SIGINT):
            status = interrupt(convert, command, out, number)
            left = leftovers(convert, out)
            tally.check(f"{label}: {number.name}", f"exit status {status}, left {left}" if status != -number or left else None)
        status = interrupt(convert, command, out, signal.SIGKILL)
        tally.check(f"{label}: a killed run leaves its part", None if status == -signal.SIGKILL and leftovers(convert, out) else f"status {status}")
        tally.check(f"{label}: the next run", harness.why_not_success(harness.run(command, timeout=300)))
        parts = [n for n in leftovers(convert, out) if ".part-" in n]
        tally.check(f"{label}: the next run removes it", f"left {parts}" if parts else None)
        for name in leftovers(convert, out):
            os.remove(os.path.join(convert.scratch.folder, name))
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        result = harness.run(command, timeout=300, preexec_fn=limit)
        tally.check(f"{label}: no room", harness.why_not_refusal(result) or (f"left {leftovers(convert, out)}" if leftovers(convert, out) else None))


def check_shards(tally, convert):
    """The same model in several files."""
    models = harness.tiny_models()
    source = models.write(models.Case("llama", "gguf", ("f32",), models.BY256, label="to-divide"), convert.scratch.folder)
    whole, alone = convert.must(source, "--shard-size", "1G")
    tally.check("a shard size above the model's: one file", None if os.path.exists(alone) and whole["shards"] == 0 else f"{whole['shards']} shards")
    summary, out = convert.must(source, "--shard-size", "1M")
    count = summary["shards"]
    names = [f"{out[:-len('.cmf')]}-{i + 1:05}-of-{count:05}.cmf" for i in range(count)]
    tally.check("several files", None if count > 1 and all(map(os.path.exists, names)) and not os.path.exists(out) else f"{count} shards")
    tally.check("no folder left", None if len(leftovers(convert, out)) == count else f"left {leftovers(convert, out)}")
    check_same_model(tally, convert, "sharded", source, names[0], TOKENS)
    for size in ("0", "1K", "x", "-1G"):
        result, refused = convert.call(source, "--shard-size", size)
        tally.check(f"refuses --shard-size {size}", harness.why_not_refusal(result, refused))
    result = harness.run([os.path.join(convert.args.bin, "cortiq-convert"), source, "-o", convert.scratch.path("plain.bin"), "--shard-size", "1M"])
    tally.check("refuses shards without .cmf", harness.why_not_refusal(result))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-convert", "cortiq-inspect", "cortiq-run", "cortiq-compile")
    tally = harness.Tally()
    for check in (check_fixtures, check_bad_fixtures, check_tiny_gguf, check_round_trips, check_checkpoints, check_codecs, check_refusals, check_shards, check_interrupted, check_memory):
        with harness.Scratch() as scratch:
            convert = Convert(args, scratch)
            try:
                check(tally, *((args, convert) if check in (check_fixtures, check_bad_fixtures) else (convert,)))
            except (RuntimeError, OSError, ValueError) as error:
                tally.check(check.__name__, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
