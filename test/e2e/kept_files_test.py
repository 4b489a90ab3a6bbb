#!/usr/bin/env python3
"""What the programs must never do to files that are there: write over what they read, run what was changed after it was signed, take
another model's artifact from the cache, leave a signature beside a file that it does not sign.
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import convert_test
import harness


class Files:
    """Calls of programs in a folder whose files are compared afterwards."""

    def __init__(self, args, scratch, tally):
        self.args, self.scratch, self.tally = args, scratch, tally

    def call(self, program, *options):
        return harness.run([os.path.join(self.args.bin, program), *options], timeout=300,
                           env=dict(os.environ, XDG_CACHE_HOME=self.scratch.path("cache")))

    def must(self, program, *options):
        result = self.call(program, *options)
        if why_not := harness.why_not_success(result):
            raise RuntimeError(f"{program} {' '.join(options)}: {why_not}")
        return result

    def refused(self, label, victim, program, *options):
        """The call is refused, and `victim` is what it was."""
        before = open(victim, "rb").read()
        result = self.call(program, *options)
        why_not = harness.why_not_refusal(result)
        if not os.path.exists(victim) or open(victim, "rb").read() != before:
            why_not = "the file was changed"
        self.tally.check(label, why_not)
        return result

    def says(self, label, result, word):
        self.tally.check(label, None if word in result.stdout + result.stderr else f"{word!r} not in: {result.stdout}{result.stderr}")


def tiny(files, arch, container, codec, label):
    models = harness.tiny_models()
    return models.write(models.Case(arch, container, (codec,), models.BY256, label=label), files.scratch.folder)


def check_inputs(files):
    """Every file that is read, as the output of whoever reads it."""
    scratch = files.scratch
    gguf = tiny(files, "llama", "gguf", "f32", "input")
    files.refused("inspect --tensor over its file", gguf, "cortiq-inspect", gguf, "--tensor", "output_norm.weight", "-o", gguf)
    files.must("cortiq-convert", gguf, "-o", scratch.path("parts.cmf"), "--shard-size", "1M")
    parts = sorted(scratch.path(name) for name in os.listdir(scratch.folder) if name.startswith("parts-"))
    for label, victim in (("the second part", parts[1]), ("the last part", parts[-1])):
        files.refused(f"inspect --tensor over {label}", victim, "cortiq-inspect", parts[0], "--tensor", "model.norm.weight", "-o", victim)
        files.refused(f"compile over {label}", victim, "cortiq-compile", parts[0], "-o", victim)
        files.refused(f"compile --emit over {label}", victim, "cortiq-compile", parts[0], "--emit=cmf", "-o", victim)
        for backend in ("cpu", "reference"):
            files.refused(f"run --logits over {label}, {backend}", victim, "cortiq-run", parts[0], "--backend", backend, "--tokens", "1", "-n", "0", "--logits", victim)
    signature = parts[1] + ".sig"
    with open(signature, "w", encoding="utf-8") as out:
        out.write("{}")
    files.refused("inspect --tensor over a signature", signature, "cortiq-inspect", parts[0], "--tensor", "model.norm.weight", "-o", signature)
    payload = scratch.path("payload.bin")
    with open(payload, "wb") as out:
        out.write(bytes(34))
    files.refused("inspect --decode over its payload", payload, "cortiq-inspect", "--decode", "gguf:Q8_0", payload, "--shape", "1x32", "-o", payload)
    link = scratch.path("link.cmf")
    os.link(gguf, link)
    files.refused("convert over a link to its input", gguf, "cortiq-convert", gguf, "-o", link)
    if files.args.fixtures:
        split = [shutil.copy(os.path.join(files.args.fixtures, "models-gguf", f"llama-split-0000{i}-of-00002.gguf"), scratch.folder) for i in (1, 2)]
        os.link(split[1], scratch.path("second.cmf"))
        files.refused("convert over the second part", split[1], "cortiq-convert", split[0], "-o", scratch.path("second.cmf"))
    check_folder(files)


def check_folder(files):
    models = harness.tiny_models()
    folder = convert_test.write_checkpoint(files.scratch.path("checkpoint"), models.Case("llama", "cmf", ("f32",), models.ODD), 1)
    convert_test.write_json(folder, "vocab.json", {})
    for name in sorted(os.listdir(folder)):
        for out in (name, "link.cmf"):
            if out != name:
                os.symlink(name, os.path.join(folder, out))
            files.refused(f"convert over {name} as {out}", os.path.join(folder, name), "cortiq-convert", folder, "-o", os.path.join(folder, out))
        os.remove(os.path.join(folder, "link.cmf"))
    for turn in ("first", "second"):
        files.must("cortiq-convert", folder, "-o", os.path.join(folder, "model.cmf"))
        files.tally.note(f"convert into the folder, {turn} time")


def check_leftovers(files):
    """Files and folders whose names are like those of unfinished results."""
    gguf = tiny(files, "llama", "gguf", "f32", "names")
    out = files.scratch.path("named.cmf")
    kept = [out + suffix for suffix in (".part-abcdef/deep/file", ".part-abcdef.cortiq/file", ".part-123456", ".part-backup.txt")]
    for path in kept:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        open(path, "w", encoding="utf-8").close()
    files.must("cortiq-convert", gguf, "-o", out)
    gone = [path for path in kept if not os.path.exists(path)]
    files.tally.check("files with such names stay", f"gone: {gone}" if gone else None)


def check_cut(files, args):
    """An input that becomes shorter meanwhile, and signals beside those of every day."""
    convert = convert_test.Convert(args, files.scratch)
    for what in ("cut", signal.SIGQUIT, signal.SIGPIPE, signal.SIGXCPU):
        path, _ = convert_test.write_large(convert)
        out = files.scratch.output(".cmf")
        command = [os.path.join(args.bin, "cortiq-convert"), path, "-o", out, "--quant", "q4_tiled", "-j", "1"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not convert_test.leftovers(convert, out) and process.poll() is None:
            pass
        if what == "cut":
            os.truncate(path, 4096)
        else:
            process.send_signal(what)
        status = process.wait(60)
        wanted = 2 if what == "cut" else -what
        left = convert_test.leftovers(convert, out)
        files.tally.check(f"{what}: nothing stays", f"exit status {status}, left {left}" if status != wanted or left else None)


def check_killed_compiler(files):
    """A compiler that is killed, at ten places of its run, leaves no artifact or a whole one; the next run is as the first."""
    model = os.path.join(files.scratch.folder, "killed.gguf")
    files.must("cortiq-bench", "--synthetic", "layers=4,hidden=512,ffn=1024,heads=8,vocab=4096:q4_0", "-o", model)
    whole, out = files.scratch.output(".cqa"), files.scratch.path("killed.cqa")
    options = (model, "--target", "x86-64-v3", "-j", "1", "-o")
    start = time.monotonic()
    files.must("cortiq-compile", *options, whole)
    took = time.monotonic() - start
    with open(whole, "rb") as file:
        expected = file.read()
    killed = 0
    for place in range(10):
        command = [os.path.join(files.args.bin, "cortiq-compile"), *options, out]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(timeout=took * (place + 0.5) / 10)
        except subprocess.TimeoutExpired:
            process.kill()
        killed += process.wait() == -signal.SIGKILL
        if os.path.exists(out):
            with open(out, "rb") as file:
                files.tally.check(f"killed at {place}: what stands there is whole", None if file.read() == expected else "it is another file")
            os.remove(out)
    files.tally.check("the compiler was killed", None if killed >= 5 else f"{killed} of 10 times")
    files.must("cortiq-compile", *options, out)
    with open(out, "rb") as file:
        files.tally.check("behind killed runs", None if file.read() == expected else "another artifact")
    left = sorted(name for name in os.listdir(files.scratch.folder) if name.startswith("killed.cqa") and name != "killed.cqa")
    files.tally.check("behind killed runs: no parts", f"left {left}" if left else None)


def check_signatures(files):
    folder = os.path.join(files.args.fixtures, "models")
    if not files.args.fixtures or not os.path.exists(os.path.join(folder, "signed-tampered.cmf")):
        files.tally.skip("CORTIQ_FIXTURES does not name a folder with models/signed-tampered.cmf")
        return
    tampered, signed, unsigned = (os.path.join(folder, name + ".cmf") for name in ("signed-tampered", "signed", "llama-f16"))
    key = json.load(open(os.path.join(folder, "signed.expect.json"), encoding="utf-8"))["public_key"]
    out = files.scratch.output(".cqa")
    run = ("--tokens", "1,2", "-n", "2")
    for label, word, program, *options in (
            ("compile, tampered", "changed after signing", "cortiq-compile", tampered, "-o", out),
            ("compile --emit, tampered", "changed after signing", "cortiq-compile", tampered, "--emit=cmf"),
            ("run, tampered", "changed after signing", "cortiq-run", tampered, *run),
            ("reference, tampered", "changed after signing", "cortiq-run", tampered, "--backend=reference", *run),
            ("compile, other key", harness.ANOTHER_KEY, "cortiq-compile", signed, "-o", out, "--require-key", harness.KEY_OF_NOBODY),
            ("run, other key", harness.ANOTHER_KEY, "cortiq-run", signed, "--require-key", harness.KEY_OF_NOBODY, *run),
            ("reference, other key", harness.ANOTHER_KEY, "cortiq-run", signed, "--backend=reference", "--require-key", harness.KEY_OF_NOBODY, *run),
            ("compile, unsigned", "not signed", "cortiq-compile", unsigned, "-o", out, "--require-key", key),
            ("compile, no key", "64 hexadecimal digits", "cortiq-compile", signed, "-o", out, "--require-key", "12"),
            ("compile, GGUF", "no signature", "cortiq-compile", tiny(files, "llama", "gguf", "f32", "unsigned"), "-o", out, "--require-key", key)):
        result = files.call(program, *options)
        why_not = harness.why_not_refusal(result, out)
        files.tally.check(label, why_not or (None if word in result.stderr else f"not named: {word}: {result.stderr}"))
    for options in ((), ("--require-key", key)):
        files.must("cortiq-compile", signed, "-o", out, *options)
        files.must("cortiq-run", signed, *run, *options)
    result = files.call("cortiq-run", out, "--require-key", key, *run)
    files.tally.check("run, an artifact", harness.why_not_refusal(result))
    # A signature that comes after the model was compiled counts too.
    copy = shutil.copy(tampered, files.scratch.path("late.cmf"))
    files.must("cortiq-run", copy, *run)
    shutil.copy(tampered + ".sig", copy + ".sig")
    files.tally.check("run, tampered, in the cache", harness.why_not_refusal(files.call("cortiq-run", copy, *run)))


def check_cache(files):
    """An entry that was replaced by another model's."""
    cache = files.scratch.path("own-cache")
    one, other = tiny(files, "llama", "gguf", "f32", "one"), tiny(files, "qwen3", "gguf", "f32", "other")
    said = {}
    for model in (one, other):
        said[model] = files.must("cortiq-run", model, "--cache", cache, "--tokens", "1,2", "-n", "4", "--temp", "0", "--logits", model + ".f32").stdout
    entries = sorted((os.path.getmtime(os.path.join(cache, name)), os.path.join(cache, name)) for name in os.listdir(cache))
    files.tally.check("two entries", None if len(entries) == 2 else f"{entries}")
    shutil.copy(entries[1][1], entries[0][1])
    for turn in ("replaced", "rebuilt"):
        files.must("cortiq-run", one, "--cache", cache, "--tokens", "1,2", "-n", "0", "--logits", one + ".again")
        same = open(one + ".again", "rb").read() == open(one + ".f32", "rb").read()
        files.tally.check(f"an entry that was {turn}", None if same else "other logits")


def check_stale_signature(files):
    gguf = tiny(files, "llama", "gguf", "f32", "stale")
    for flags, name in (((), "stale.cmf"), (("--shard-size", "1M"), "stale.cmf")):
        out = files.scratch.path(name)
        files.must("cortiq-convert", gguf, "-o", out, *flags)
        written = out if not flags else sorted(files.scratch.path(n) for n in os.listdir(files.scratch.folder) if n.startswith("stale-0"))[1]
        with open(written + ".sig", "w", encoding="utf-8") as sidecar:
            sidecar.write("{}")
        files.says("the note", files.must("cortiq-convert", gguf, "-o", out, *flags), "was removed")
        files.tally.check("the signature is gone", os.path.exists(written + ".sig"))


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-bench", "cortiq-convert", "cortiq-inspect", "cortiq-run", "cortiq-compile")
    tally = harness.Tally()
    for check in (check_inputs, check_leftovers, check_cut, check_killed_compiler, check_signatures, check_cache, check_stale_signature):
        with harness.Scratch() as scratch:
            files = Files(args, scratch, tally)
            try:
                check(*((files, args) if check is check_cut else (files,)))
            except (RuntimeError, OSError, ValueError) as error:
                tally.check(check.__name__, str(error))
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
