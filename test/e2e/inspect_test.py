#!/usr/bin/env python3
"""What cortiq-inspect says of a file: whether it can be run, who signed it, what its overlay holds, and what happens when the file is cut meanwhile."""
import json
import os
import signal
import struct
import subprocess
import time

import harness

BIG = 256 << 20  # bytes of a payload that takes a while to hash
TRIES = 10       # of cutting the file in time


def inspect(args, *options):
    return harness.run([os.path.join(args.bin, "cortiq-inspect"), *options])


def listing(args, file):
    result = inspect(args, "--json", file)
    return json.loads(result.stdout) if result.returncode == 0 else {}


def check_runnable(tally, args, scratch):
    """The answer is what cortiq-compile then does; without that program it is open."""
    models = harness.tiny_models()
    compiler = os.path.join(args.bin, "cortiq-compile")
    cases = {os.path.basename(file): file for file in (models.write(case, scratch.folder) for case in models.CASES[:12])}
    foreign = scratch.path("foreign.gguf")
    with open(cases["llama-f32.gguf"], "rb") as source, open(foreign, "wb") as out:
        out.write(source.read().replace(b"llama", b"lama9"))
    cases["an unknown architecture"] = foreign
    for name, file in cases.items():
        said = listing(args, file).get("runnable", {})
        wrong = None
        if set(said) != {"model", "text", "chat"}:
            wrong = f"runnable has {sorted(said)}"
        elif any(entry["runnable"] is not True and not entry["because"] for entry in said.values()):
            wrong = f"a refusal without a reason: {said}"
        elif os.path.exists(compiler):
            compiled = harness.run([compiler, file, "-o", scratch.output(".cqa")]).returncode == 0
            wrong = None if said["model"]["runnable"] is compiled else f"runnable is {said['model']}, compiling gives {compiled}"
        elif said["model"]["runnable"] is not None:
            wrong = "an answer without the compiler"
        tally.check(f"runnable: {name}", wrong)
        text = inspect(args, file).stdout
        tally.check(f"runnable in words: {name}", None if "\nrunnable\n  model    " in text else text[:200])


def check_signatures(tally, args):
    folder = os.path.join(args.fixtures, "models")
    if not args.fixtures or not os.path.exists(os.path.join(folder, "signed.cmf")):
        tally.skip("CORTIQ_FIXTURES does not name a folder with models/signed.cmf")
        return
    signed, tampered, unsigned = (os.path.join(folder, name + ".cmf") for name in ("signed", "signed-tampered", "skills"))
    with open(os.path.join(folder, "signed.expect.json"), encoding="utf-8") as expect:
        key = json.load(expect)["public_key"]
    for label, file, options, word in (("signed", signed, (), "signed by " + key), ("key as asked", signed, ("--require-key", key.upper()), "signed by " + key),
                                       ("unsigned", unsigned, (), "not signed")):
        result = inspect(args, "--verify", file, *options)
        tally.check(label, harness.why_not_success(result) or (None if word in result.stdout else f"not said: {word}: {result.stdout}"))
    for label, file, options, word in (("tampered", tampered, (), "changed after signing"), ("other key", signed, ("--require-key", harness.KEY_OF_NOBODY), harness.ANOTHER_KEY),
                                       ("no key", signed, ("--require-key", "12"), "64 hexadecimal digits"), ("nothing signed", unsigned, ("--require-key", key), "not signed"),
                                       ("GGUF", os.path.join(args.fixtures, "models-gguf", "llama-q4_0.gguf"), ("--require-key", key), "no signature")):
        result = inspect(args, "--verify", file, *options)
        tally.check(label, harness.why_not_refusal(result) or (None if word in result.stderr else f"not named: {word}: {result.stderr}"))


def check_overlay(tally, args):
    file = os.path.join(args.fixtures, "models", "skills-sparse.cmf")
    if not args.fixtures or not os.path.exists(file):
        tally.skip("CORTIQ_FIXTURES does not name a folder with models/skills-sparse.cmf")
        return
    shown = listing(args, file).get("metadata", {})
    tally.check("skills", None if [s.get("id") for s in shown.get("skills", [])] == ["story"] and shown["skills"][0]["tensors"] == 6 else shown.get("skills"))
    tally.check("masks", None if shown.get("masks", [{}])[0].get("active_neurons") == "384 of 768" else shown.get("masks"))
    tally.check("sparse index", None if [e.get("layer") for e in shown.get("sparse_index", [])] == [0, 1, 2] else shown.get("sparse_index"))


def write_big(path):
    """A CMF of one large tensor, a hole on disk, with a hash that does not match: only one who read all of it can say so."""
    models = harness.tiny_models()
    arch = {"arch_name": "llama", "hidden_size": 8, "intermediate_size": 8, "num_layers": 1, "num_attention_heads": 1, "num_kv_heads": 1, "head_dim": 8,
            "vocab_size": 8, "layer_types": ["FullAttention"], "rms_norm_eps": 1e-6, "max_position_embeddings": 8}
    models.write_cmf(path, {"format": "cmf", "version": 2, "quant_type": "F32", "arch": arch}, [("big", 5, (BIG,), b"")], b"")
    with open(path, "r+b") as file:
        raw = bytearray(file.read())
        directory, = struct.unpack_from("<Q", raw, 0x20)
        data, = struct.unpack_from("<Q", raw, 0x30)
        struct.pack_into("<QQ", raw, directory + 16 + 40, BIG, 1)  # its bytes and hash
        struct.pack_into("<Q", raw, 0x38, BIG)                     # bytes of the data section
        struct.pack_into("<QQ", raw, 0x70, 0, 0)                   # no hashes of header and directory
        file.seek(0)
        file.write(raw)
        file.truncate(data + BIG)


def is_mapped(pid, path):
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            return path in maps.read()
    except OSError:
        return False


def check_cut(tally, args, scratch):
    for _ in range(TRIES):
        file = scratch.path("big.cmf")
        write_big(file)
        child = subprocess.Popen([os.path.join(args.bin, "cortiq-inspect"), "--verify", file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while child.poll() is None and not is_mapped(child.pid, file):
            time.sleep(0.001)
        if child.poll() is None:
            child.send_signal(signal.SIGSTOP)
            os.truncate(file, 8192)
            child.send_signal(signal.SIGCONT)
        output, messages = child.communicate()
        if "does not match its hash" not in messages:
            break
    result = subprocess.CompletedProcess(child.args, child.returncode, output, messages)
    expected = None if "became shorter or unreadable while it was in use" in messages and "big.cmf" in messages else f"said: {messages}"
    tally.check("a file that is cut while it is read", harness.why_not_refusal(result) or expected)


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-inspect")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        check_runnable(tally, args, scratch)
        check_cut(tally, args, scratch)
    check_signatures(tally, args)
    check_overlay(tally, args)
    return tally.finish()


if __name__ == "__main__":
    raise SystemExit(main())
