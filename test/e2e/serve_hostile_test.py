#!/usr/bin/env python3
"""cortiq-serve among clients that mean it no good and on a machine that fails: heads without end, requests one behind the other, prompts far
too long, requests without sense, a log on a full disk, kill -9, an artifact that cannot be read. It lives, or ends with a sentence and starts again.
"""
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import harness
import serve_fuzz
from serve_test import Server, refused, says

FUZZED = int(os.environ.get("CORTIQ_FUZZ_REQUESTS", "1500"))  # 100,000 by hand
GROWTH = 64 << 20  # bytes that the process may grow by under all this, caches of constraints included
SOON = 2.0         # seconds in which a prompt far too long is refused, on a busy machine too; tokenizing takes longer


def raw(server, data, patience=10):
    """Everything that comes back on a connection of its own."""
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.settimeout(patience)
        try:
            connection.sendall(data)
        except ConnectionError:
            pass
        out = b""
        try:
            while part := connection.recv(65536):
                out += part
        except (TimeoutError, ConnectionError):
            pass
        return out


def post(body, path="/v1/completions", more=b""):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return b"POST %s HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s" % (path.encode(), more, len(data), data)


def resident(server):
    return server.metrics()["cortiq_resident_bytes"]


def check_heads(tally, server):
    for label, data in (("of many lines", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200000), ("of one line", b"GET / HTTP/1.1\r\nA: " + b"b" * 1000000),
                        ("of one word", b"G" * 1000000)):
        answer = raw(server, data)
        tally.check(f"a head without end, {label}, is refused", "" if answer.split(b" ", 2)[1:2] in ([b"431"], [b"414"], [b"400"]) else str(answer[:100]))
    one = post({"prompt": "Once", "max_tokens": 2, "temperature": 0})
    answer = raw(server, one + b"GET /healthz HTTP/1.1\r\n\r\n" + one.replace(b"Host: x", b"Host: x\r\nConnection: close"))
    texts = [json.loads(part.split(b"\r\n\r\n", 1)[1])["choices"][0]["text"] for part in answer.split(b"HTTP/1.1 200 OK") if b"text_completion" in part]
    tally.check("three requests in one go are answered in their order", "" if answer.count(b"HTTP/1.1 200") == 3 and len(texts) == 2 and texts[0] == texts[1] and
                answer.index(b"ok\n") < answer.rindex(b"text_completion") else str(answer[:600]))
    both = raw(server, b"POST /v1/completions HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n")
    tally.check("two lengths are one error, and nothing behind it is read", "" if both.startswith(b"HTTP/1.1 400") and both.count(b"HTTP/1.1") == 1 else str(both[:300]))
    for length in (b"-1", b"5, 5", b"0x5", b"99999999999999999999"):
        answer = raw(server, b"POST /v1/completions HTTP/1.1\r\nContent-Length: " + length + b"\r\n\r\nabcde")
        tally.check(f"a length of {length.decode()} is refused", "" if answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413")) else str(answer[:100]))
    ranged = raw(server, b"GET / HTTP/1.1\r\nRange: bytes=0-3\r\nConnection: close\r\n\r\n")
    tally.check("a part of the page is the whole page", "" if ranged.startswith(b"HTTP/1.1 200") and b"</script>" in ranged else str(ranged[:100]))


def check_long_prompts(tally, server):
    for label, path, body in (("completions", "/v1/completions", {"prompt": "z" * (8_000_000)}),
                              ("chats", "/v1/chat/completions", {"messages": [{"role": "user", "content": "word " * 1_600_000}]}),
                              ("embeddings", "/v1/embeddings", {"input": "\n" * 3_900_000})):
        start = time.monotonic()
        answer = server.call("POST", path, body)
        took = time.monotonic() - start
        refused(tally, f"{label}: 8 MB are refused", answer, 400, "bytes", "context")
        tally.check(f"{label}: before they are tokenized", "" if took < SOON else f"{took:.1f} s")
    bomb = __import__("gzip").compress(b" " * 64_000_000)
    answer = raw(server, post(bomb, more=b"Content-Encoding: gzip\r\n"))
    tally.check("64 MB packed into 64 KB are refused", "" if answer.startswith(b"HTTP/1.1 413") else str(answer[:100]))
    refused(tally, "too large a body is refused before it comes", server.call("POST", "/v1/completions", b"x" * 9_000_000), 413, "--max-body")


def check_crowd(tally, server):
    """Clients that hold connections and say nothing, or little, do not keep others out."""
    idle = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(100)]
    for connection in idle[50:]:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Le")
    start = time.monotonic()
    says(tally, "among a hundred silent clients others are served", server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2})[0], 200)
    tally.check("at once", "" if time.monotonic() - start < 5 else f"{time.monotonic() - start:.1f} s")
    for connection in idle:
        connection.close()
    # Readers that never read: their answers wait in the socket, and nobody else does.
    deaf = []
    for _ in range(4):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", server.port))
        connection.sendall(post({"prompt": "Once upon a time", "max_tokens": 100, "stream": True, "ignore_eos": True}))
        deaf.append(connection)
    says(tally, "nor do clients that never read", server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 2})[0], 200)
    for connection in deaf:
        connection.close()
    tally.check("what they asked for ends", server.wait_for(lambda m: m["cortiq_requests_running"] == 0 and m["cortiq_requests_waiting"] == 0))


def check_fuzz(tally, server):
    """Four clients at once, so that what one is answered cannot be another's."""
    results = [None] * 4

    def run(i):
        results[i] = serve_fuzz.fuzz(server.port, FUZZED // 4, seed=100 + i)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    faults = [fault for found, _ in results for fault in found]
    statuses = {str(status) for _, counts in results for status in counts}
    tally.check(f"{FUZZED} requests without sense are answered", "" if not faults else f"{len(faults)} faults, the first: {faults[0]}")
    tally.check("in more than one way", "" if {"200", "400"} <= statuses else str(statuses))
    says(tally, "and the server lives", server.call("GET", "/healthz")[0], 200)


def check_logs(tally, args, artifact):
    with Server(args, artifact, "--log", "json") as server:
        server.call("GET", "/healthz")
        server.call("GET", "/nothing\"\u00e4".encode("latin-1").decode("latin-1").replace("\u00e4", "%C3%A4"))
        server.log.flush()
        with open(artifact + ".log") as log:
            lines = [json.loads(line) for line in log if line.startswith("{")]
        says(tally, "logs in JSON", [(line["method"], line["path"], line["status"]) for line in lines][:1], [("GET", "/healthz", 200)])
        tally.check("with times", "" if all(line["seconds"] >= 0 and line["time"].endswith("Z") and line["client"] == "127.0.0.1" for line in lines) else str(lines))
    with open("/dev/full", "w") as full:
        process = subprocess.Popen([os.path.join(args.bin, "cortiq-serve"), artifact, "--port", "0"], stdout=subprocess.PIPE, stderr=full, text=True)
        try:
            port = int(process.stdout.readline().rsplit(":", 1)[1])
            client = serve_fuzz.Client(port)
            codes = [client.ask(post({"prompt": "a", "max_tokens": 1}), 30)[0] for _ in range(3)]
            client.close()
            says(tally, "with its log on a full disk it serves", codes, [200] * 3)
        finally:
            process.send_signal(signal.SIGTERM)
            says(tally, "and ends when told to", process.wait(30), 0)
        process = subprocess.run([os.path.join(args.bin, "cortiq-serve"), artifact, "--port", "0"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
        tally.check("with nowhere to say its port it ends with a sentence", "" if process.returncode == 2 and process.stderr.count("\n") == 1 else
                    f"{process.returncode}: {process.stderr}")


def check_starts(tally, args, artifact, scratch):
    def sentence(label, words, *flags, file=artifact, expected=2):
        result = harness.run([os.path.join(args.bin, "cortiq-serve"), file, *flags])
        missing = [word for word in words if word not in result.stderr]
        tally.check(label, "" if result.returncode == expected and not missing and result.stderr.count("\n") == 1 else f"{result.returncode}: {result.stderr!r}")

    sentence("an address of another machine is refused", ["192.0.2.1", "no such address"], "--host", "192.0.2.1", "--port", "0")
    sentence("so is a name that is none", ["no.such.name.invalid"], "--host", "no.such.name.invalid")
    sentence("a missing artifact", ["none.cqa"], file=scratch.path("none.cqa"))
    sentence("a folder", ["cortiq-serve:"], file=os.path.dirname(artifact))
    with open(artifact, "rb") as file:
        data = file.read()
    cut = scratch.path("cut.cqa")
    with open(cut, "wb") as file:
        file.write(data[:len(data) // 2])
    sentence("half an artifact", ["cut.cqa"], file=cut)
    if os.getuid() != 0:
        os.chmod(cut, 0)
        sentence("an artifact that may not be read", ["cut.cqa"], file=cut)
    with Server(args, artifact) as server:
        sentence("a port that is taken", [str(server.port), "another program"], "--port", str(server.port))
        # kill -9 in the middle of answers, and the same port again.
        connections = []
        for _ in range(3):
            connection = socket.create_connection(("127.0.0.1", server.port))
            connection.sendall(post({"prompt": "Once upon a time", "max_tokens": 400, "stream": True, "ignore_eos": True}))
            connection.recv(100)
            connections.append(connection)
        port = server.port
        server.process.kill()
        server.process.wait()
        with Server(args, artifact, port=port) as again:
            says(tally, "after kill -9 it starts again at once, at its port", (again.port, again.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1})[0]),
                 (port, 200))
        for connection in connections:
            connection.close()


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-compile", "cortiq-serve")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        artifact = scratch.path("m.cqa")
        subprocess.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact], check=True, stdin=subprocess.DEVNULL)
        with Server(args, artifact, "--sessions", "2", "--queue", "64") as server:
            for path, body in (("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}], "regex": "a", "max_tokens": 1}),
                               ("/v1/embeddings", {"input": "x"})):
                server.call("POST", path, body)  # what is made for the first of its kind
            before = resident(server)
            check_heads(tally, server)
            check_long_prompts(tally, server)
            check_crowd(tally, server)
            check_fuzz(tally, server)
            tally.check("memory does not grow", "" if resident(server) - before < GROWTH else f"by {(resident(server) - before) / 2**20:.0f} MiB")
        check_logs(tally, args, artifact)
        check_starts(tally, args, artifact, scratch)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
