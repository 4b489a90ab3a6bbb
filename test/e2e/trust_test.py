#!/usr/bin/env python3
"""Who may run what: keys, signed artifacts and every way to change one afterwards, memory that is never writable and executable."""
import hashlib
import http.client
import json
import os
import re
import shutil
import stat
import struct
import subprocess
import sys

import harness
import serve_test

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
HEADER = 1024
SECTIONS = ("code", "manifest", "program", "tokenizer", "provenance", "weights")
IMAGE_HASH, HEADER_HASH = HEADER + 120, HEADER + 152
RUN = ("--tokens", "1,2,3", "-n", "4", "--temp", "0", "--json")


def blake2b(data):
    return hashlib.blake2b(data, digest_size=32).digest()


def sections(data):
    """(offset, bytes) of each section, as the header says."""
    return {name: struct.unpack_from("<QQ", data, HEADER + 24 + 16 * i) for i, name in enumerate(SECTIONS)}


def resealed(data):
    """`data` with the hashes of its header made right again: what anybody can do who has no key."""
    data = bytearray(data)
    image = data[4096:sections(data)["weights"][0]]
    data[IMAGE_HASH:IMAGE_HASH + 32] = blake2b(image)
    data[HEADER_HASH:HEADER_HASH + 32] = bytes(32)
    data[HEADER_HASH:HEADER_HASH + 32] = blake2b(data[:4096])
    return bytes(data)


class Trust:
    def __init__(self, args, scratch, tally):
        self.args, self.scratch, self.tally = args, scratch, tally

    def call(self, program, *options, **more):
        return harness.run([os.path.join(self.args.bin, program), *options],
                           env=dict(os.environ, XDG_CACHE_HOME=self.scratch.path("cache")), **more)

    def must(self, program, *options):
        result = self.call(program, *options)
        if why_not := harness.why_not_success(result):
            raise RuntimeError(f"{program} {' '.join(options)}: {why_not}")
        return result.stdout

    def refused(self, label, word, program, *options):
        result = self.call(program, *options)
        why_not = harness.why_not_refusal(result)
        self.tally.check(label, why_not or (None if word in result.stderr else f"not said: {word}: {result.stderr}"))

    def says(self, label, text, word):
        self.tally.check(label, None if word in text else f"{word!r} not in {text!r}")

    def write(self, name, data):
        path = self.scratch.path(name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def tiny(self, label, codec="q8_0", container="gguf"):
        models = harness.tiny_models()
        return models.write(models.Case("llama", container, (codec,), models.BY256, label=label), self.scratch.folder)


def make_keys(t):
    """Two pairs of keys: (key file, public key) each."""
    out = []
    for name in ("key", "other-key"):
        path = t.scratch.path(name)
        said = t.must("cortiq-skill", "make-key", path)
        with open(path + ".pub", encoding="ascii") as file:
            public = file.read().strip()
        t.says(f"{name}: the public key is said", said, public)
        out.append((path, public))
    key = out[0][0]
    t.tally.check("a key file is its owner's alone", None if stat.S_IMODE(os.stat(key).st_mode) == 0o600 else oct(os.stat(key).st_mode))
    t.tally.check("keys differ", None if out[0][1] != out[1][1] else "they are equal")
    before = open(key, "rb").read()
    t.refused("a key is never written over", "never written over", "cortiq-skill", "make-key", key)
    os.rename(key + ".pub", key + ".pub-away")
    t.refused("nor when its public key is gone", "never written over", "cortiq-skill", "make-key", key)
    t.tally.check("and nothing is left behind", None if not os.path.exists(key + ".pub") else "a public key of no key")
    os.rename(key + ".pub-away", key + ".pub")
    t.tally.check("it is what it was", None if open(key, "rb").read() == before else "it was changed")
    return out


def check_key_files(t, model, key):
    out = t.scratch.output(".cqa")
    open_key = shutil.copy(key, t.scratch.path("open-key"))
    os.chmod(open_key, 0o640)
    for label, word, file in (("a key that others can read", "chmod 600", open_key), ("no key file", "64 hexadecimal digits", model),
                              ("a key that is not there", "does not exist", t.scratch.path("nothing"))):
        if file == model:
            os.chmod(model, 0o600)
        t.refused(f"compile, {label}", word, "cortiq-compile", model, "-o", out, "--sign", file)
        t.refused(f"sign, {label}", word, "cortiq-skill", "sign", model, "--key", file)
    before = open(key, "rb").read()
    t.refused("compile over the key", "", "cortiq-compile", model, "-o", key, "--sign", key)
    side = shutil.copy(key, out + ".sig")
    t.refused("compile, the signature over the key", "", "cortiq-compile", model, "-o", out, "--sign", side)
    t.tally.check("the keys are what they were", None if open(key, "rb").read() == before == open(side, "rb").read() else "one was changed")
    t.tally.check("and no artifact was left", None if not os.path.exists(out) else out)
    os.remove(side)
    t.refused("--sign without an artifact", "--emit", "cortiq-compile", model, "--emit=cmf", "--sign", key)


def check_signed(t, model, keys):
    """Signing at once and later are the same; gives the signed artifact."""
    (key, public), (_, other) = keys
    signed, plain = t.scratch.path("signed.cqa"), t.scratch.path("plain.cqa")
    t.must("cortiq-compile", model, "-o", signed, "--target", "x86-64-v3", "--sign", key)
    t.must("cortiq-compile", model, "-o", plain, "--target", "x86-64-v3")
    t.tally.check("signing changes no byte", None if open(signed, "rb").read() == open(plain, "rb").read() else "the files differ")
    for program, options in (("cortiq-run", RUN), ("cortiq-bench", ("--prefill", "4", "--decode", "2", "--repeat", "1", "--no-machine"))):
        t.refused(f"{program}, unsigned", "not signed", program, plain, *options, "--require-key", public)
        for label, word in (("digits", public), ("upper case", public.upper()), ("the file", key + ".pub")):
            t.tally.check(f"{program}, key as {label}", harness.why_not_success(t.call(program, signed, *options, "--require-key", word)))
        t.refused(f"{program}, another key", "required is another key", program, signed, *options, "--require-key", other)
        t.refused(f"{program}, no key", "64 hexadecimal digits", program, signed, *options, "--require-key", "12")
        t.refused(f"{program}, a file without one", "64 hexadecimal digits", program, signed, *options, "--require-key", signed)
    t.says("cortiq-skill signs it later", t.must("cortiq-skill", "sign", plain, "--key", key), public)
    t.tally.check("with the same signature", None if open(signed + ".sig").read() == open(plain + ".sig").read() else "it differs")
    for program, options, word in (("cortiq-inspect", ("--verify",), "--require-key"), ("cortiq-skill", ("verify",), "--key")):
        t.says(f"{program}: whose it is", t.must(program, *options, signed), "signed by " + public)
        t.must(program, *options, signed, word, public)
        t.refused(f"{program}, another key", "required is another key", program, *options, signed, word, other)
    doctor = t.call("cortiq-run", "--doctor", signed, "--require-key", other)
    t.tally.check("--doctor asks for the key too", None if doctor.returncode == 2 and "another key" in doctor.stderr else doctor.stdout + doctor.stderr)
    t.must("cortiq-skill", "sign", plain, "--key", keys[1][0])
    t.refused("signed by somebody else", "is signed by " + other, "cortiq-run", plain, *RUN, "--require-key", public)
    return signed


def check_changed(t, model, signed, public):
    """Every section changed, with and without hashes made right again; cut, extended, exchanged."""
    raw = open(signed, "rb").read()
    signature = open(signed + ".sig", "rb").read()

    def refused(label, data, word, sidecar=signature):
        path = t.write("changed.cqa", data)
        t.write("changed.cqa.sig", sidecar)
        t.refused(label, word, "cortiq-run", path, *RUN, "--require-key", public)

    for name, (offset, size) in sections(raw).items():
        for place in (offset, offset + size // 2, offset + size - 1):
            data = bytearray(raw)
            data[place] ^= 1
            refused(f"{name}, byte {place}", bytes(data), "weights are damaged" if name == "weights" else "hash of code, manifest and program")
            if name != "weights":
                refused(f"{name}, byte {place}, hashes made right", resealed(data), "its signature is of another file")
    data = bytearray(raw)
    data[100] ^= 1
    refused("the header page", bytes(data), "header is damaged")
    refused("the header page, hashes made right", resealed(data), "its signature is of another file")
    refused("cut", raw[:-4096], "cut or extended")
    refused("extended", raw + bytes(4096), "cut or extended")
    refused("cut to its header", raw[:4096], "cut or extended")
    # What an owner of the file without the key could want most: other weights under the same program.
    begin = sections(raw)["weights"][0]
    other, weights = t.scratch.path("other-weights.cqa"), bytearray(open(model, "rb").read())
    weights[-100] ^= 1
    os.mkdir(t.scratch.path("other"))
    t.must("cortiq-compile", t.write(os.path.join("other", os.path.basename(model)), weights), "-o", other, "--target", "x86-64-v3")
    foreign = open(other, "rb").read()
    t.tally.check("another model of the same shape", None if len(foreign) == len(raw) and foreign[begin:] != raw[begin:] else "it is not")
    refused("weights of another model", raw[:begin] + foreign[begin:], "weights are damaged")
    refused("another artifact", foreign, "its signature is of another file")
    for field, digits in (("root", 64), ("sig", 128), ("pubkey", 64)):
        for label, value, word in (("short", "00", "hexadecimal digits"), ("foreign", "00" * (digits // 2), "")):
            text = json.loads(signature)
            text[field] = value
            refused(f"signature: {field} {label}", raw, word, json.dumps(text).encode())
    for label, sidecar in (("empty", b""), ("no JSON", b"\xff\xfe"), ("a list", b"[]"), ("long", b" " * 70000), ("of a model", json.dumps({**json.loads(signature), "alg": "ed25519-sha256"}).encode())):
        refused(f"signature: {label}", raw, "", sidecar)
    os.remove(t.scratch.path("changed.cqa.sig"))
    os.symlink("nowhere", t.scratch.path("changed.cqa.sig"))
    t.refused("signature: a link to nothing", "", "cortiq-run", t.write("changed.cqa", raw), *RUN, "--require-key", public)
    os.remove(t.scratch.path("changed.cqa.sig"))


def check_without_weights(t, model, keys):
    """An artifact without weights: what is filled follows from the seed and from tables that are signed."""
    (key, public), (_, other) = keys
    none, whole = t.scratch.path("none.cqa"), t.scratch.path("whole.cqa")
    t.must("cortiq-compile", model, "-o", none, "--weights=none", "--target", "x86-64-v3", "--sign", key)
    t.must("cortiq-compile", model, "-o", whole, "--target", "x86-64-v3")
    measure = ("--fill", "7", "--prefill", "4", "--decode", "2", "--repeat", "1", "--no-machine", "--require-key")
    t.must("cortiq-bench", none, *measure, public)
    t.refused("filled, another key", "required is another key", "cortiq-bench", none, *measure, other)
    raw, full = open(none, "rb").read(), open(whole, "rb").read()
    data = bytearray(raw + full[sections(full)["weights"][0]:])
    struct.pack_into("<Q", data, HEADER + 16, len(data))
    struct.pack_into("<QQ", data, HEADER + 24 + 16 * 5, len(raw), len(data) - len(raw))
    shutil.copy(none + ".sig", t.scratch.path("with.cqa.sig"))
    t.refused("weights put behind an artifact without", "its signature is of another file", "cortiq-bench", t.write("with.cqa", resealed(data)), *measure, public)


def check_provenance(t, model, signed, public):
    said = json.loads(t.must("cortiq-inspect", "--provenance", signed, "--json"))
    raw = open(model, "rb").read()
    source = {"name": os.path.basename(model), "bytes": len(raw), "blake2b256": blake2b(raw).hex()}
    t.tally.check("provenance: the source", None if said["sources"] == [source] else f"{said['sources']}")
    t.tally.check("provenance: target and numerics", None if (said["targets"], said["numerics"]) == (["x86-64-v3"], "fast") else f"{said}")
    compiler = said["compiler"]
    t.tally.check("provenance: the compiler", None if compiler["name"] == "cortiq-compile" and re.fullmatch(r"[0-9a-f]{40}\+?|unknown", compiler["commit"]) else f"{compiler}")
    t.tally.check("provenance: the signer", None if said["signature"] == "signed by " + public else said["signature"])
    t.tally.check("provenance: the root is what is signed", None if said["root"] == json.load(open(signed + ".sig"))["root"] else said["root"])
    text = t.must("cortiq-inspect", "--provenance", signed)
    for word in (source["blake2b256"], compiler["commit"], said["options"], said["root"], public):
        t.says("provenance as text", text, word)
    section = sections(open(signed, "rb").read())["provenance"]
    stored = open(signed, "rb").read()[section[0]:sum(section)].decode()
    for word in (t.scratch.folder, os.uname().nodename, os.path.basename(t.args.bin)):
        t.tally.check("provenance: nothing of this machine", None if f"{word}/" not in stored and word != stored else word)
    several = t.scratch.path("several.cqa")
    t.must("cortiq-compile", model, "-o", several, "--target", "avx512vnni,x86-64-v3", "--numerics=exact", "--weights=none")
    said = json.loads(t.must("cortiq-inspect", "--provenance", several, "--json"))
    t.tally.check("provenance: several targets, exact, no weights",
                  None if said["targets"] == ["x86-64-v3", "avx512vnni"] and said["numerics"] == "exact" and said["weights"] == "none" and
                  "blake2b256" not in said["sources"][0] and said["signature"] == "not signed" else f"{said}")
    t.refused("provenance of a model", "is no artifact", "cortiq-inspect", "--provenance", model)


def statuses(pid):
    """What the system says of each thread."""
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii", errors="replace") as file:
            yield dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def writable_code(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as file:
        return [line.strip() for line in file if re.match(r"\S+ .wx", line)]


def check_server(t, signed, public):
    """Memory of a server at work, and what it can still do."""
    question = {"model": "tiny", "prompt": "a b c", "max_tokens": 8, "temperature": 0}
    answers = []
    for flags in ((), ("--require-key", public), ("--require-key", public, "--sandbox=auto"), ("--memory", "1G", "--sandbox=auto"), ("--sandbox=off",)):
        name = " ".join(flags[:1] + flags[-1:]) or "plain"
        with serve_test.Server(t.args, signed, *flags) as server:
            if not server.port:
                t.tally.check(f"server {name}", "it did not start: " + open(signed + ".log").read()[-300:])
                continue
            status, _, answer = server.call("POST", "/v1/completions", question)
            t.tally.check(f"server {name}: answers", None if status == 200 else f"{status}: {answer}")
            answers.append(answer["choices"][0]["text"] if status == 200 else None)
            t.tally.check(f"server {name}: metrics", None if server.metrics().get("cortiq_resident_bytes", 1) > 0 else "no memory")
            t.tally.check(f"server {name}: no memory is writable and executable", "; ".join(writable_code(server.process.pid)))
            if "--sandbox=auto" in flags and "the sandbox is not whole" in open(signed + ".log", encoding="utf-8").read():
                t.tally.skip(f"server {name}: this kernel does not offer all of the sandbox")
            elif "--sandbox=auto" in flags:
                threads = list(statuses(server.process.pid))
                bad = [s["Name"] for s in threads if s.get("Seccomp") != "2" or s.get("NoNewPrivs") != "1"]
                t.tally.check(f"server {name}: every thread is held", None if threads and not bad else f"{bad} of {len(threads)}")
            server.process.terminate()
            t.tally.check(f"server {name}: ends when told to", None if server.process.wait(30) == 0 else f"{server.process.returncode}")
    t.tally.check("the same answer every time", None if len(set(answers)) == 1 else f"{answers}")
    for flags, word in ((("--require-key", harness.KEY_OF_NOBODY), harness.ANOTHER_KEY), (("--require-key", "12"), "64 hexadecimal digits"), (("--sandbox=some",), "")):
        t.refused(f"server {' '.join(flags)}", word, "cortiq-serve", signed, "--port", "0", *flags)


def check_experts(t, keys):
    """Experts that are read while a server is shut in, from a signed artifact."""
    model = os.path.join(t.args.fixtures, "models-gguf", "qwen3moe-q4_k.gguf")
    if not t.args.fixtures or not os.path.exists(model):
        t.tally.skip("CORTIQ_FIXTURES does not name a folder with models-gguf/qwen3moe-q4_k.gguf")
        return
    artifact = t.scratch.path("experts.cqa")
    t.must("cortiq-compile", model, "-o", artifact, "--max-context", "64", "--sign", keys[0][0])
    least = re.search(r"least that works is --memory (\d+)M", t.call("cortiq-serve", artifact, "--port", "0", "--memory", "4K").stderr)
    t.tally.check("experts: the least budget is told", None if least else "it is not")
    question = {"prompt": "a b c d", "max_tokens": 16, "temperature": 0, "ignore_eos": True}
    answers = []
    for flags in ((), ("--memory", f"{int(least[1]) + 1}M" if least else "1G", "--sandbox=auto", "--require-key", keys[0][1])):
        with serve_test.Server(t.args, artifact, *flags) as server:
            if not server.port:
                t.tally.check("experts: the server starts", open(artifact + ".log").read()[-300:])
                return
            status, _, answer = server.call("POST", "/v1/completions", question)
            answers.append(answer["choices"][0]["text"] if status == 200 else f"{status}: {answer}")
    t.tally.check("experts: the same answer, shut in", None if answers[0] == answers[1] and answers[0] else f"{answers}")


def check_container(t, signed, public):
    """The root folder of the container, entered as its user: there is nothing in it but the server, and it serves."""
    root = t.scratch.path("root")
    made = harness.run([os.path.join(ROOT, "packaging", "rootfs"), t.args.bin, signed, root])
    t.tally.check("container: its root is made", harness.why_not_success(made))
    files = sorted(os.path.relpath(os.path.join(where, name), root) for where, _, names in os.walk(root) for name in names)
    odd = [f for f in files if not re.fullmatch(r"usr/bin/cortiq-serve|model\.cqa(\.sig)?|etc/(passwd|group)|(usr/)?lib(64)?/.*\.so(\.[0-9.]+)?", f)]
    t.tally.check("container: nothing else is in it", ", ".join(odd))
    writable = [f for f in files if os.stat(os.path.join(root, f)).st_mode & 0o022]
    t.tally.check("container: nothing in it is writable for others", ", ".join(writable))
    if os.geteuid() != 0:
        t.tally.skip("container: only root may enter another root folder")
        return
    log = open(t.scratch.path("container.log"), "w+")
    process = subprocess.Popen([shutil.which("chroot"), "--userspec=65532:65532", root, "/usr/bin/cortiq-serve", "/model.cqa", "--port", "0", "--sandbox=auto", "--require-key", public],
                               stdout=subprocess.PIPE, stderr=log, text=True, env={})
    try:
        line = process.stdout.readline()
        port = line.rsplit(":", 1)[-1].strip()
        t.tally.check("container: the server starts", None if port.isdigit() else f"{line} {open(log.name).read()}")
        if port.isdigit():
            healthy = t.call("cortiq-serve", "--check-health", port)
            t.tally.check("container: it is healthy", harness.why_not_success(healthy))
            connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
            connection.request("POST", "/v1/completions", json.dumps({"prompt": "a b c", "max_tokens": 4}), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            t.tally.check("container: it answers", None if answer.status == 200 else f"{answer.status}: {answer.read()[:200]}")
            users = {s["Uid"].split()[0] for s in statuses(process.pid)}
            t.tally.check("container: its user has no rights", None if users == {"65532"} else f"{users}")
        process.terminate()
        t.tally.check("container: it ends when told to", None if process.wait(30) == 0 else f"{process.returncode}")
    finally:
        process.kill()
        log.close()
    # A variable of a script that was never set is no wish to go without.
    for program, option in (("cortiq-serve", "--require-key"), ("cortiq-serve", "--sandbox"), ("cortiq-serve", "--api-key-file"), ("cortiq-run", "--require-key"),
                            ("cortiq-run", "--save-session"), ("cortiq-bench", "--require-key"), ("cortiq-compile", "--require-key")):
        t.refused(f"{program}: an empty word for {option}", "leave the option out", program, "no-file", option, "")
    t.refused("cortiq-skill: an empty word for --key", "leave the option out", "cortiq-skill", "verify", "no-file", "--key", "")
    t.refused("an API key of a device", "/dev/zero", "cortiq-serve", "no-file", "--api-key-file", "/dev/zero")
    t.refused("health of a server that is not there", "no server answers", "cortiq-serve", "--check-health", "1")


def main():
    args = harness.arguments(__doc__)
    harness.need_tools(args, "cortiq-bench", "cortiq-compile", "cortiq-inspect", "cortiq-run", "cortiq-serve", "cortiq-skill")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        t = Trust(args, scratch, tally)
        keys = make_keys(t)
        model = t.tiny("signed")
        check_key_files(t, model, keys[0][0])
        signed = check_signed(t, model, keys)
        check_changed(t, model, signed, keys[0][1])
        check_without_weights(t, model, keys)
        check_provenance(t, model, signed, keys[0][1])
        check_server(t, signed, keys[0][1])
        check_experts(t, keys)
        check_container(t, signed, keys[0][1])
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
