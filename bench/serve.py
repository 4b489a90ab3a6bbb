#!/usr/bin/env python3
"""Many clients at once: cortiq-serve, and llama.cpp's server on the same weights beside it.

  bench/serve.py MODEL.gguf [--bin DIR] [--llama-server PATH] [--clients 8,64] [--seconds 60] [--rounds 3] [--tokens 64] [--json OUT]

Each client asks again as soon as it has its answer, streaming, greedily, always for --tokens tokens. Servers take turns, one window of
--seconds each a round; the one that is not asked does nothing. Every stream of cortiq-serve is held against what cortiq-run says to the
same prompt alone: one that is wrong, mixed or cut is counted. The table gives, over all windows of a server, tokens a second (the median
window), the median and the 99th percentile of the time between tokens, and of the time to the first one, CPU time of the server a token,
and the server's memory before, after a third and at the end. Exit code 1 when a stream was wrong.

Prompts begin alike in groups, as conversations with one system prompt do, and differ in their ends; --distinct makes them differ from the
first word on, so that no server can keep anything.
"""
import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

SUBJECTS = ["rivers", "bread", "the moon", "a lighthouse", "old maps", "bees", "winter", "trains", "glass", "music", "salt", "a bridge", "clocks", "sand",
            "a garden", "paper"]
SYSTEM = "You are a patient teacher. You answer in short sentences, with one example each, and never speak of yourself. "


def stop(sentence):
    print(f"serve.py: {sentence}", file=sys.stderr)
    sys.exit(2)


def prompts_of(args):
    out = []
    for i in range(args.prompts):
        subject = SUBJECTS[i % len(SUBJECTS)]
        question = f"Question {i}: tell me about {subject}, and what it has to do with {SUBJECTS[(i * 7 + 3) % len(SUBJECTS)]}."
        out.append(f"{question} {SYSTEM * args.long}" if args.distinct else f"{SYSTEM * args.long}{question}")
    return out


class Server:
    def __init__(self, name, command, port):
        self.name, self.port = name, port
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        self.windows, self.gaps, self.firsts, self.memory = [], [], [], []
        self.wrong = self.failed = self.answers = self.tokens = 0
        self.cpu = 0.0
        self.wait()

    def wait(self):
        until = time.monotonic() + 300
        while time.monotonic() < until:
            if self.process.poll() is not None:
                self.log.seek(0)
                stop(f"{self.name} ended with {self.process.returncode}: {self.log.read().decode(errors='replace').strip().splitlines()[-1:]}")
            for path in ("/health", "/healthz"):
                try:
                    if urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=5).status == 200:
                        return
                except OSError:
                    pass
            time.sleep(0.2)
        stop(f"{self.name} does not answer")

    def resident(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


async def ask(server, prompt, tokens, timing):
    """The text of one streamed answer and its number of tokens; None when the stream broke."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 20)
    try:
        body = json.dumps({"prompt": prompt, "temperature": 0, "max_tokens": tokens, "stream": True, "ignore_eos": True, "cache_prompt": True,
                           "stream_options": {"include_usage": True}}).encode()
        asked = time.perf_counter()
        writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
                     b"Content-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
        text, count, last, done = [], 0, None, False
        while line := await reader.readline():
            if not line.startswith(b"data: "):
                continue
            now = time.perf_counter()
            if line.startswith(b"data: [DONE]"):
                done = True
                break
            event = json.loads(line[6:])
            if event.get("usage"):
                count = event["usage"]["completion_tokens"]
            piece = event["choices"][0].get("text", "") if event.get("choices") else ""
            if not piece:
                continue
            text.append(piece)
            timing.append((now, None if last is None else now - last, now - asked if last is None else None))
            last = now
        return ("".join(text), count) if done else None
    finally:
        writer.close()


async def window(server, clients, seconds, prompts, tokens, expected):
    """One window: every client asks until the time is up; answers under way are waited for, but only what came in time counts."""
    end = time.perf_counter() + seconds
    timings = []

    async def client(number):
        turn = number
        while time.perf_counter() < end:
            prompt = prompts[turn % len(prompts)]
            turn += clients + 1
            timing = []
            try:
                answer = await ask(server, prompt, tokens, timing)
            except (OSError, ValueError, KeyError, asyncio.IncompleteReadError):
                answer = None
            timings.append(timing)
            server.answers += 1
            if answer is None:
                server.failed += 1
                await asyncio.sleep(0.1)
            elif expected and answer[0] != expected[prompt]:
                server.wrong += 1
                if server.wrong <= 3:
                    print(f"wrong: {answer[0]!r} instead of {expected[prompt]!r}", file=sys.stderr)

    cpu = server.cpu_seconds()
    began = time.perf_counter()
    await asyncio.gather(*(client(i) for i in range(clients)))
    took = time.perf_counter() - began
    got = sum(len(timing) for timing in timings)
    in_time = sum(1 for timing in timings for at, _, _ in timing if at <= end)
    server.windows.append(in_time / seconds)
    server.tokens += got
    server.cpu += server.cpu_seconds() - cpu
    server.gaps += [gap for timing in timings for _, gap, _ in timing if gap is not None]
    server.firsts += [first for timing in timings for _, _, first in timing if first is not None]
    return took


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def expected_answers(args, artifact, prompts):
    out = {}
    for prompt in prompts:
        result = subprocess.run([os.path.join(args.bin, "cortiq-run"), artifact, "-p", prompt, "-n", str(args.tokens), "--temp", "0",
                                 "--repeat-penalty", "1", "--ignore-eos", "--json"],
                                stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if result.returncode:
            stop(f"cortiq-run ended with {result.returncode}: {result.stderr.strip()}")
        out[prompt] = json.loads(result.stdout)["text"]
    return out


def start_servers(args, artifact, clients):
    port = free_port()
    command = [os.path.join(args.bin, "cortiq-serve"), artifact, "--port", str(port), "--sessions", str(clients), "--queue", str(clients),
               "--connections", str(clients + 16), "--max-context", str(args.context)]
    if args.threads:
        command += ["--threads", str(args.threads)]
    if args.cache:
        command += ["--cache", args.cache]
    servers = [Server("cortiq-serve", command, port)]
    if args.llama_server:
        port = free_port()
        command = [args.llama_server, "-m", args.model, "--port", str(port), "-np", str(clients), "-c", str(args.context * clients)]
        if args.threads:
            command += ["-t", str(args.threads), "-tb", str(args.threads)]
        servers.append(Server("llama-server", command + args.llama_flags.split(), port))
    return servers


def report(servers, clients, table):
    best = None
    for server in servers:
        rate = statistics.median(server.windows)
        row = {"server": server.name, "clients": clients, "tokens_per_second": rate, "windows": server.windows,
               "between_median_ms": 1e3 * percentile(server.gaps, 0.5), "between_p99_ms": 1e3 * percentile(server.gaps, 0.99),
               "first_median_ms": 1e3 * percentile(server.firsts, 0.5), "first_p99_ms": 1e3 * percentile(server.firsts, 0.99),
               "cpu_ms_per_token": 1e3 * server.cpu / max(1, server.tokens), "answers": server.answers, "wrong": server.wrong, "failed": server.failed,
               "resident_mb": [round(bytes_ / 1e6, 1) for bytes_ in server.memory]}
        table.append(row)
        ratio = f"  {best / rate:5.2f} x" if best else ""
        print(f"{server.name:14} {clients:3} clients {rate:8.1f} tokens/s{ratio:9}  between tokens {row['between_median_ms']:7.1f} ms, p99 "
              f"{row['between_p99_ms']:7.1f} ({row['between_p99_ms'] / row['between_median_ms']:4.1f} x)  first {row['first_median_ms']:7.1f} ms  "
              f"CPU {row['cpu_ms_per_token']:6.2f} ms/token  {server.answers} answers, {server.wrong} wrong, {server.failed} failed  memory "
              f"{' -> '.join(f'{m:.0f}' for m in row['resident_mb'])} MB", flush=True)
        best = best or rate


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="a GGUF file, or without --llama-server an artifact")
    parser.add_argument("--bin", default=os.environ.get("CORTIQ_BIN", "build/bin"))
    parser.add_argument("--artifact", help="made of the model elsewhere; compiled unless given")
    parser.add_argument("--llama-server", help="llama.cpp's server; without it cortiq-serve runs alone")
    parser.add_argument("--llama-flags", default="", help="further flags for it")
    parser.add_argument("--clients", default="8,64")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=64, help="of an answer")
    parser.add_argument("--prompts", type=int, default=48)
    parser.add_argument("--long", type=int, default=2, help="times that the prompts' common text stands in them")
    parser.add_argument("--distinct", action="store_true")
    parser.add_argument("--context", type=int, default=512)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--cache", help="cortiq-serve's")
    parser.add_argument("--json", help="file for all figures")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers are ended on the way out
    prompts = prompts_of(args)
    table = []
    with tempfile.TemporaryDirectory() as folder:
        artifact = args.artifact or (args.model if args.model.endswith(".cqa") else os.path.join(folder, "m.cqa"))
        if not os.path.exists(artifact):
            subprocess.run([os.path.join(args.bin, "cortiq-compile"), args.model, "-o", artifact], check=True, stdin=subprocess.DEVNULL)
        expected = expected_answers(args, artifact, prompts)
        for clients in map(int, args.clients.split(",")):
            servers = start_servers(args, artifact, clients)
            try:
                for server in servers: # warm: files read, caches touched
                    asyncio.run(window(server, clients, min(2.0, args.seconds), prompts, args.tokens, None))
                    server.__dict__.update(windows=[], gaps=[], firsts=[], wrong=0, failed=0, answers=0, tokens=0, cpu=0.0, memory=[server.resident()])
                for turn in range(args.rounds):
                    for server in servers if turn % 2 == 0 else servers[::-1]:
                        asyncio.run(window(server, clients, args.seconds, prompts, args.tokens, expected if server is servers[0] else None))
                        if turn + 1 in {max(1, (args.rounds + 2) // 3), args.rounds}:
                            server.memory.append(server.resident())
            finally:
                for server in servers:
                    server.end()
            report(servers, clients, table)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"model": os.path.basename(args.model), "seconds": args.seconds, "rounds": args.rounds, "tokens": args.tokens,
                       "cpus": len(os.sched_getaffinity(0)), "load": os.getloadavg(), "rows": table}, file, indent=1)
    return 1 if any(row["wrong"] or (row["failed"] and row["server"] == "cortiq-serve") for row in table) else 0


if __name__ == "__main__":
    sys.exit(main())
