#!/usr/bin/env python3
"""cortiq-serve as its clients meet it: raw HTTP, the official Python client, many clients at once, clients that leave, requests that make
no sense. What it says is held against cortiq-run.
"""
import array
import concurrent.futures
import http.client
import json
import math
import os
import random
import signal
import socket
import subprocess
import sys
import time

import harness

KEY = "a-key-for-the-test"
CLOSE = 1e-4  # of a log-probability: the server's numbers and --logits are the same arithmetic, written as text


class Server:
    """One running cortiq-serve."""

    def __init__(self, args, artifact, *flags, key=None, port=0):
        env = dict(os.environ, **({"CORTIQ_API_KEY": key} if key else {}))
        self.log = open(artifact + ".log", "a+")
        self.process = subprocess.Popen([os.path.join(args.bin, "cortiq-serve"), artifact, "--port", str(port), "--model-id", "tiny", *flags,
                                         *os.environ.get("CORTIQ_SERVE_FLAGS", "").split()],
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, env=env)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1]) if ":" in line else 0
        self.key = key

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def call(self, method, path, body=None, headers=None):
        """Status, headers and body; the latter from JSON where it is."""
        connection = self.connect()
        given = {"Content-Type": "application/json", **({"Authorization": "Bearer " + self.key} if self.key else {}), **(headers or {})}
        connection.request(method, path, body if isinstance(body, (bytes, str, type(None))) else json.dumps(body), given)
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        return answer.status, answer.headers, json.loads(data) if "json" in answer.headers.get("Content-Type", "") else data

    def chat(self, content, **options):
        return self.call("POST", "/v1/chat/completions", {"messages": [{"role": "user", "content": content}], **options})

    def events(self, path, body):
        """The events of a stream, without the closing [DONE], whose absence is an error."""
        connection = self.connect()
        connection.request("POST", path, json.dumps({**body, "stream": True}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        events = [line[6:] for line in text.split("\n\n") if line.startswith("data: ")]
        if answer.status != 200 or not events or events[-1] != "[DONE]":
            raise RuntimeError(f"status {answer.status}, no proper end: {text[-300:]!r}")
        return [json.loads(event) for event in events[:-1]]

    def metrics(self):
        lines = self.call("GET", "/metrics")[2].decode().splitlines()
        return {line.split()[0]: float(line.split()[1]) for line in lines if not line.startswith("#")}

    def wait_for(self, condition, seconds=20):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if condition(self.metrics()):
                return ""
            time.sleep(0.05)
        return f"not within {seconds} s: {self.metrics()}"


def says(tally, label, got, want):
    tally.check(label, "" if got == want else f"{got!r} instead of {want!r}")


def refused(tally, label, answer, status, *words):
    code, _, body = answer
    message = body.get("error", {}).get("message", "") if isinstance(body, dict) else ""
    missing = [word for word in words if word not in message]
    tally.check(label, "" if code == status and message and not missing else f"status {code}, {body!r}")


def check_answers(tally, server, run):
    status, _, models = server.call("GET", "/v1/models")
    says(tally, "models are listed", (status, [m["id"] for m in models["data"]]), (200, ["tiny"]))
    want = run("--chat", "-p", "hello there", "-n", "24")
    status, _, got = server.chat("hello there", temperature=0, max_tokens=24)
    choice = got["choices"][0]
    says(tally, "a chat says what cortiq-run says", choice["message"]["content"], want["text"])
    says(tally, "and why it ended", choice["finish_reason"], want["finish_reason"])
    says(tally, "and counts the same tokens", [got["usage"][k] for k in ("prompt_tokens", "completion_tokens", "total_tokens")],
         [want["usage"][k] for k in ("prompt_tokens", "completion_tokens", "total_tokens")])
    body = {"messages": [{"role": "user", "content": "hello there"}], "temperature": 0, "max_tokens": 24}
    events = server.events("/v1/chat/completions", {**body, "stream_options": {"include_usage": True}})
    says(tally, "a stream joined is the whole", "".join(e["choices"][0]["delta"].get("content", "") for e in events if e["choices"]), want["text"])
    says(tally, "its first chunk has the role", events[0]["choices"][0]["delta"]["role"], "assistant")
    says(tally, "its last has the usage, all of a conversation's prompt but one token kept", events[-1]["usage"]["prompt_tokens_details"],
         {"cached_tokens": want["usage"]["prompt_tokens"] - 1})
    want = run("-p", "Once upon a time", "-n", "16")
    says(tally, "a completion says what cortiq-run says",
         server.call("POST", "/v1/completions", {"prompt": "Once upon a time", "temperature": 0})[2]["choices"][0]["text"], want["text"])
    says(tally, "seeds repeat", *(server.chat("hi", seed=5, max_tokens=12)[2]["choices"][0]["message"]["content"] for _ in range(2)))
    says(tally, "a limit of no token gives the usage", server.chat("hi", max_tokens=0)[2]["usage"]["completion_tokens"], 0)


def check_shapes(tally, server):
    """What clients send besides a plain string."""
    plain = server.chat("ab", temperature=0, max_tokens=8)[2]["choices"][0]["message"]["content"]
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    says(tally, "text parts are joined", server.chat(parts, temperature=0, max_completion_tokens=8.0)[2]["choices"][0]["message"]["content"], plain)
    says(tally, "unknown fields are ignored", server.chat("ab", temperature=0, max_tokens=8, user="me", metadata={})[2]["choices"][0]["message"]["content"],
         plain)
    calls = [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]
    messages = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": "go"}, {"role": "assistant", "content": None, "tool_calls": calls},
                {"role": "tool", "tool_call_id": "1", "content": "done"}]
    says(tally, "calls and their results are taken", server.call("POST", "/v1/chat/completions", {"messages": messages, "max_tokens": 1})[0], 200)
    refused(tally, "an unknown role is refused", server.call("POST", "/v1/chat/completions", {"messages": [{"role": "usr", "content": "x"}], "max_tokens": 2}), 400,
            "messages[0].role")
    refused(tally, "images are refused", server.chat([{"type": "image_url", "image_url": {"url": "x"}}]), 400, "messages[0]", "text only")
    refused(tally, "messages [] is refused", server.call("POST", "/v1/chat/completions", {"messages": []}), 400, "messages")
    refused(tally, "a missing content is refused", server.call("POST", "/v1/chat/completions", {"messages": [{"role": "user"}]}), 400, "content")
    for name, value in (("stop", [""]), ("stop", 3), ("temperature", 9), ("temperature", "hot"), ("top_p", -1), ("n", 0), ("n", 1000), ("max_tokens", -1), ("max_tokens", 1.5),
                        ("logit_bias", {"x": 1}), ("logit_bias", {"999999999": 1}), ("seed", "x"), ("top_logprobs", 3), ("stream", "yes"),
                        ("response_format", {"type": "xml"}), ("response_format", 3), ("tools", 3), ("stream_options", 1)):
        refused(tally, f"{name} {value!r} is refused", server.chat("hi", **{name: value}), 400, name)
    refused(tally, "another model is not found", server.chat("hi", model="gpt"), 404, "gpt", "tiny")
    refused(tally, "what is no JSON is refused", server.call("POST", "/v1/completions", "{"), 400, "JSON")
    refused(tally, "so is a deep nest", server.call("POST", "/v1/completions", "[" * 200000), 400, "levels")
    refused(tally, "an id beyond the vocabulary is refused", server.call("POST", "/v1/completions", {"prompt": [10**9]}), 400, "prompt")
    refused(tally, "a thousand prompts are refused", server.call("POST", "/v1/completions", {"prompt": ["a"] * 1000}), 400, "prompt")
    refused(tally, "tools that the template does not show are refused", server.chat("hi", tools=[{"type": "function", "function": {"name": "f"}}]), 400, "template")
    refused(tally, "a prompt beyond the context is refused", server.call("POST", "/v1/completions", {"prompt": "word " * 20000}), 400, "context")
    for kind in ("application/x-www-form-urlencoded", "text/plain"):
        answer = server.call("POST", "/v1/completions", {"prompt": "a", "max_tokens": 1, "user": "x" * 100000}, headers={"Content-Type": kind})
        says(tally, f"long JSON is taken as {kind}", answer[0], 200)
    refused(tally, "another path is not there, and what is there is said", server.call("GET", "/v2"), 404, "GET /v2", "POST /v1/chat/completions")
    refused(tally, "nor is a chat by GET", server.call("GET", "/v1/chat/completions"), 404, "GET /v1/chat/completions")
    status, headers, page = server.call("GET", "/")
    tally.check("there is a page", "" if status == 200 and b"<title>cortiq</title>" in page and "Content-Security-Policy" in headers else str(status))


def check_stops(tally, server):
    body = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 24}
    text = server.call("POST", "/v1/completions", body)[2]["choices"][0]["text"]
    middle = len(text) // 2
    for stops in ([text[middle:middle + 3]], [text[middle + 1:middle + 3], text[middle:middle + 3]], [text], [text[0]], [text[-4:] + "never"]):
        end = min([text.find(stop) for stop in stops if stop in text], default=len(text))
        whole = server.call("POST", "/v1/completions", {**body, "stop": stops})[2]["choices"][0]
        says(tally, f"the text ends before {stops}", whole["text"], text[:end])
        says(tally, "and says so", whole["finish_reason"], "stop" if end < len(text) else "length")
        stream = server.events("/v1/completions", {**body, "stop": stops})
        says(tally, "streamed too", "".join(e["choices"][0]["text"] for e in stream), text[:end])


def check_logprobs(tally, server, logits_of):
    """Both endpoints' log-probabilities are the model's own, whatever the temperature."""
    prompt = "Once upon a time"
    row = logits_of(prompt)
    largest = max(row)
    base = largest + math.log(sum(math.exp(v - largest) for v in row))
    best = sorted(range(len(row)), key=lambda i: (-row[i], i))[:5]
    for temperature in (0, 1e-3, 1):
        got = server.call("POST", "/v1/completions", {"prompt": prompt, "temperature": temperature, "max_tokens": 1, "logprobs": 5})[2]
        found = sorted(got["choices"][0]["logprobs"]["top_logprobs"][0].values(), reverse=True)
        worst = max(abs(a - (row[i] - base)) for a, i in zip(found, best))
        tally.check(f"log-probabilities at temperature {temperature}", "" if worst < CLOSE else f"off by {worst}")
    got = server.chat("hi", temperature=0, max_tokens=12, logprobs=True, top_logprobs=2)[2]["choices"][0]
    entries = got["logprobs"]["content"]
    says(tally, "one entry a token", len(entries), 12)
    says(tally, "the likeliest is the chosen one", [e["top_logprobs"][0]["logprob"] for e in entries], [e["logprob"] for e in entries])
    says(tally, "their bytes are the text", bytes(b for e in entries for b in e["bytes"]).decode("utf-8", "replace"), got["message"]["content"])
    events = server.events("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "temperature": 0, "max_tokens": 12, "logprobs": True,
                                                    "stop": ["no such text"]})
    streamed = [e for event in events if event["choices"] and event["choices"][0]["logprobs"] for e in event["choices"][0]["logprobs"]["content"]]
    says(tally, "streamed: one entry a token too", [e["logprob"] for e in streamed], [e["logprob"] for e in entries])


def check_together(tally, server, run):
    """Clients at once get what each alone gets; half of them as streams."""
    prompts = [f"{word} {n}" for n in range(4) for word in ("Once", "The", "A", "There")]
    want = {p: run("-p", p, "-n", "20")["text"] for p in prompts}

    def ask(i):
        body = {"prompt": prompts[i % len(prompts)], "temperature": 0, "max_tokens": 20}
        if i % 2:
            return "".join(e["choices"][0]["text"] for e in server.events("/v1/completions", body))
        return server.call("POST", "/v1/completions", body)[2]["choices"][0]["text"]

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        got = list(pool.map(ask, range(64)))
    wrong = [i for i, text in enumerate(got) if text != want[prompts[i % len(prompts)]]]
    tally.check("64 clients at once: no text is wrong or mixed", "" if not wrong else f"{len(wrong)} are, the first is {got[wrong[0]]!r}")


def check_leaving(tally, args, artifact, run):
    """One session: a client that leaves, in the queue, in the prompt or in the answer, disturbs nobody."""
    with Server(args, artifact, "--sessions", "1", "--queue", "2") as server:
        long = {"prompt": "Once upon a time", "temperature": 0, "max_tokens": 30000, "ignore_eos": True}  # seconds

        def begin(body):
            connection = socket.create_connection(("127.0.0.1", server.port))
            data = json.dumps(body)
            connection.sendall(f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n{data}".encode())
            return connection

        for stream in (True, False):
            first = begin({**long, "stream": stream})
            tally.check("the first runs", server.wait_for(lambda m: m["cortiq_requests_running"] == 1))
            waiting = begin({**long, "stream": not stream})
            tally.check("the second waits", server.wait_for(lambda m: m["cortiq_requests_waiting"] == 1))
            third = begin(long)
            tally.check("the third waits too", server.wait_for(lambda m: m["cortiq_requests_waiting"] == 2))
            status, headers, _ = server.call("POST", "/v1/completions", long)
            says(tally, "a fourth is refused for now", (status, headers.get("Retry-After")), (429, "1"))
            for connection in (waiting, first, third):
                connection.close()
            tally.check("what nobody waits for ends", server.wait_for(lambda m: m["cortiq_requests_running"] + m["cortiq_requests_waiting"] == 0))
        want = run("-p", "Once upon a time", "-n", "12")["text"]
        says(tally, "the next client gets its answer", server.call("POST", "/v1/completions", {**long, "max_tokens": 12})[2]["choices"][0]["text"], want)

        # Told to end: what runs is finished, nothing more is taken on.
        last = begin({**long, "max_tokens": 8000})
        server.wait_for(lambda m: m["cortiq_requests_running"] == 1)
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.05)
        refused(tally, "meanwhile a new one hears that the server ends", server.call("POST", "/v1/completions", long), 503, "ending")
        answer = b""
        while part := last.recv(65536):
            answer += part
        says(tally, "SIGTERM lets an answer end", (b'"completion_tokens":8000' in answer, server.process.wait(60)), (True, 0))


def check_connections(tally, args, artifact):
    """What is sent behind a request, or never, harms neither memory nor the connection nor the end of the server."""
    with Server(args, artifact, "--max-body", "64K", "--drain", "0", key=KEY) as server:
        def ask(connection, path, headers, body=None):
            connection.request("POST", path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

        key = {"Authorization": "Bearer " + KEY}
        before = server.metrics()["cortiq_resident_bytes"]
        for path, sort, status in (("/v1/completions", {}, 413), ("/nothing", {}, 413), ("/v1/completions", {"Content-Type": "multipart/form-data; boundary=x"}, 415)):
            connection = server.connect()
            says(tally, f"64 MB in pieces to {path} are refused {sort}", ask(connection, path, {**key, **sort}, iter([bytes(1 << 20)] * 64))[0], status)
            says(tally, "and the connection serves on", ask(connection, "/v1/completions", key, iter([b'{"prompt": "a", "max_tokens": 1}']))[0], 200)
            connection.close()
        grown = server.metrics()["cortiq_resident_bytes"] - before
        tally.check("and nothing of them is kept", "" if grown < 32 << 20 else f"{grown} bytes more in memory")
        connection = server.connect()
        says(tally, "without its key a request is refused", ask(connection, "/v1/completions", {}, '{"prompt": "a"}')[0], 401)
        says(tally, "and its body is not the next request", ask(connection, "/v1/completions", key, '{"prompt": "a", "max_tokens": 1}')[0], 200)
        connection.close()
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.settimeout(10)
            says(tally, "a request of no length is refused", connection.recv(12)[-3:], b"411")

        drip = socket.create_connection(("127.0.0.1", server.port))
        drip.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        server.process.send_signal(signal.SIGTERM)
        until = time.monotonic() + 15
        try:
            while server.process.poll() is None and time.monotonic() < until:
                drip.sendall(b" ")
                time.sleep(0.2)
        except OSError:
            pass
        drip.close()
        try:
            says(tally, "a client that never ends its request keeps no server", server.process.wait(5), 0)
        except subprocess.TimeoutExpired:
            tally.check("a client that never ends its request keeps no server", "it did")


def check_keys(tally, args, artifact):
    with Server(args, artifact, "--max-body", "64K", "--log", "json", key=KEY) as server:
        says(tally, "with its key a client is let in", server.call("GET", "/v1/models")[0], 200)
        for given in ("", "Bearer", "Bearer wrong", "Bearer " + KEY + "x", KEY):
            refused(tally, f"'{given}' is not", server.call("GET", "/v1/models", headers={"Authorization": given}), 401, "key")
        second = harness.run([os.path.join(args.bin, "cortiq-serve"), artifact, "--port", str(server.port)], timeout=20)
        tally.check("a port that is taken is refused", harness.why_not_refusal(second) or ("" if str(server.port) in second.stderr else second.stderr))
        says(tally, "health needs none", server.call("GET", "/healthz", headers={"Authorization": ""})[0], 200)
        says(tally, "a large request is refused", server.call("POST", "/v1/completions", "x" * 100000)[0], 413)
        server.log.flush()
        with open(server.log.name) as log:
            tally.check("the log is JSON", "" if any(json.loads(line)["status"] == 401 for line in log if line.startswith("{")) else "no such line")
    with open(artifact + ".key", "w", newline="") as file:
        file.write(KEY + "\r\nmore")
    with Server(args, artifact, "--api-key-file", artifact + ".key") as server:
        says(tally, "the key is the file's first line, however it ends", [server.call("GET", "/v1/models", headers={"Authorization": given})[0]
                                                                         for given in ("Bearer " + KEY, "Bearer more")], [200, 401])
    for flags in (["--port", "99999"], ["--sessions", "0"], ["--log", "xml"], ["--api-key-file", "/nonexistent"], ["--host", "not an address"],
                  ["--host", ""]):
        result = harness.run([os.path.join(args.bin, "cortiq-serve"), artifact, *flags], timeout=60)
        tally.check(f"{flags} is refused", harness.why_not_refusal(result))


def check_nonsense(tally, server):
    """Random requests: each is answered, and the server lives."""
    draw = random.Random(7)
    values = [None, True, False, 0, -1, 1.5, 10**30, "", "x", "\ud800", [], [[]], {}, {"type": "text"}, [{"role": "user", "content": "hi"}], ["a"], [1, 2],
              {"1": 5}, "stop", [None], {"a": {"b": [1]}}]
    names = ["model", "messages", "prompt", "max_tokens", "temperature", "top_p", "stop", "stream", "logprobs", "top_logprobs", "seed", "logit_bias", "n", "tools",
             "response_format", "stream_options", "presence_penalty", "echo", "suffix", "chat_template_kwargs"]
    statuses = set()
    for _ in range(400):
        body = {name: draw.choice(values) for name in draw.sample(names, draw.randint(0, 6))}
        body.setdefault("max_tokens", 2)
        text = json.dumps(body)
        if draw.random() < 0.3:
            cut = draw.randrange(len(text))
            text = text[:cut] + draw.choice(["", "\x00", "\"", "{", "\xff"]) + text[cut + draw.randint(0, 3):]
        statuses.add(server.call("POST", draw.choice(["/v1/chat/completions", "/v1/completions"]), text.encode("utf-8", "surrogatepass"))[0])
    tally.check("400 requests without sense are answered", "" if statuses <= {200, 400, 404, 500} and 400 in statuses and 500 not in statuses else str(statuses))
    for raw in (b"\x00\x01\x02", b"GET\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
                b"POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 5000 + b"\r\n"):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(raw)
    says(tally, "and the server lives", server.call("GET", "/healthz")[0], 200)


def check_client(tally, server):
    """The official Python client."""
    try:
        import openai
    except ImportError:
        tally.skip("the official client is not installed: tools/setup installs it into build/venv")
        return
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
    says(tally, "client: models", [m.id for m in client.models.list()], ["tiny"])
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]
    for _ in range(2):
        answer = client.chat.completions.create(model="tiny", messages=messages, temperature=0, max_tokens=12, logprobs=True, top_logprobs=2)
        messages += [{"role": "assistant", "content": answer.choices[0].message.content}, {"role": "user", "content": "and?"}]
    tally.check("client: a conversation's beginning is kept", "" if answer.usage.prompt_tokens_details.cached_tokens > 0 else str(answer.usage))
    says(tally, "client: log-probabilities", len(answer.choices[0].logprobs.content), answer.usage.completion_tokens)
    whole = client.chat.completions.create(model="tiny", messages=messages, temperature=0, max_tokens=20)
    stream = client.chat.completions.create(model="tiny", messages=messages, temperature=0, max_tokens=20, stream=True,
                                            stream_options={"include_usage": True})
    chunks = list(stream)
    says(tally, "client: a stream", "".join(c.choices[0].delta.content or "" for c in chunks if c.choices), whole.choices[0].message.content)
    says(tally, "client: its usage", chunks[-1].usage.completion_tokens, whole.usage.completion_tokens)
    says(tally, "client: a completion", len(client.completions.create(model="tiny", prompt="a", max_tokens=3, temperature=0, logprobs=1).choices[0].logprobs.tokens), 3)
    left = client.chat.completions.create(model="tiny", messages=messages, max_tokens=400, stream=True, extra_body={"ignore_eos": True})
    next(iter(left))
    left.close()
    tally.check("client: leaving a stream ends it", server.wait_for(lambda m: m["cortiq_requests_running"] == 0))
    try:
        client.chat.completions.create(model="other", messages=messages)
        tally.check("client: another model is an error", "it is none")
    except openai.NotFoundError:
        tally.check("client: another model is an error", "")


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-compile", "cortiq-run", "cortiq-serve")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        artifact = scratch.path("m.cqa")
        subprocess.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact], check=True, stdin=subprocess.DEVNULL)

        def run(*flags):
            result = harness.run([os.path.join(args.bin, "cortiq-run"), artifact, *flags, "--temp", "0", "--json"])
            return json.loads(result.stdout)

        def logits_of(prompt):
            out, values = scratch.output(".f32"), array.array("f")
            harness.run([os.path.join(args.bin, "cortiq-run"), artifact, "-p", prompt, "-n", "0", "--logits", out])
            with open(out, "rb") as file:
                values.frombytes(file.read())
            vocab = len(values) // run("-p", prompt, "-n", "1")["usage"]["prompt_tokens"]
            return values[-vocab:]

        with Server(args, artifact, "--sessions", "2", "--queue", "64") as server:
            check_answers(tally, server, run)
            check_shapes(tally, server)
            check_stops(tally, server)
            check_logprobs(tally, server, logits_of)
            check_together(tally, server, run)
            check_client(tally, server)
            check_nonsense(tally, server)
        subprocess.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", scratch.path("long.cqa"), "--max-context", "32768"], check=True,
                       stdin=subprocess.DEVNULL)
        check_leaving(tally, args, scratch.path("long.cqa"), run)
        check_connections(tally, args, artifact)
        check_keys(tally, args, artifact)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
