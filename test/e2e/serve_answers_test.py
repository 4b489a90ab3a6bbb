#!/usr/bin/env python3
"""Answers that cortiq-serve holds to a form: JSON of a schema, of a grammar or an expression, calls of functions in the formats of four
families, several choices, and embeddings; raw and through the official Python client.
"""
import base64
import concurrent.futures
import json
import math
import os
import re
import struct
import subprocess
import sys

import gguf_edit
import harness
from serve_test import Server, refused, says

PERSON = {"type": "object", "additionalProperties": False, "required": ["name", "age", "kind"],
          "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                         "kind": {"enum": ["a \"quoted\" one", "größer", 7, None]}}}
TREE = {"$defs": {"tree": {"type": "object", "additionalProperties": False, "required": ["v"],
                           "properties": {"v": {"type": "integer"}, "sub": {"type": "array", "maxItems": 2, "items": {"$ref": "#/$defs/tree"}}}}},
        "$ref": "#/$defs/tree"}
WEATHER = {"type": "function", "function": {"name": "weather", "description": "The weather of a city.", "parameters": {
    "type": "object", "additionalProperties": False, "required": ["city", "days"],
    "properties": {"city": {"type": "string", "maxLength": 8}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}}}}
CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}}
TURNS = ("{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% if m.tool_calls %}{{ m.tool_calls | tojson }}{% endif %}<|im_end|>\n{% endfor %}"
         "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")
SHOWN = "{% if tools %}<|im_start|>system\n{{ tools | length }} tools\nCall as EXAMPLE<|im_end|>\n{% endif %}"
# The family's way of calling, which its template shows, and an answer in it.
FORMATS = {
    "hermes": ("<tool_call>{\"name\": ..., \"arguments\": ...}</tool_call>", "<tool_call>\n{\"name\": \"clock\", \"arguments\": {}}\n</tool_call>"),
    "llama3": ("<|start_header_id|> {\"name\": ..., \"parameters\": ...}", "{\"name\": \"clock\", \"parameters\": {}}"),
    "mistral": ("[TOOL_CALLS] [{\"name\": ..., \"arguments\": ...}]", "[TOOL_CALLS] [{\"name\": \"clock\", \"arguments\": {}}]"),
    "mistral, later": ("[TOOL_CALLS]name[ARGS]{}", "[TOOL_CALLS]clock[ARGS]{}"),
    "xml": ("<tool_call>\n<function=name>\n<parameter=x>\nvalue\n</parameter>\n</function>\n</tool_call>", "<tool_call>\n<function=clock>\n</function>\n</tool_call>"),
}


def schema_format(schema, strict=True):
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": strict, "schema": schema}}


def is_person(text):
    value = json.loads(text)
    return (set(value) == {"name", "age", "kind"} and isinstance(value["name"], str) and len(value["name"]) <= 12 and isinstance(value["age"], int) and
            0 <= value["age"] <= 150 and value["kind"] in PERSON["properties"]["kind"]["enum"])


def is_tree(value):
    return set(value) <= {"v", "sub"} and isinstance(value["v"], int) and all(is_tree(part) for part in value.get("sub", []))


def check_schemas(tally, server):
    def ask(seed):
        return server.chat("who?", response_format=schema_format(PERSON), seed=seed, max_tokens=400, temperature=1 if seed else 0)[2]["choices"][0]

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(ask, range(16)))
    ended = [a for a in answers if a["finish_reason"] == "stop"]
    bad = [a["message"]["content"] for a in ended if not is_person(a["message"]["content"])]
    tally.check("16 at once: each complete answer is JSON of the schema", f"{bad[:1]} of {len(ended)}" if bad or len(ended) < 8 else "")
    for seed in range(4):
        choice = server.chat("a tree", response_format=schema_format(TREE), seed=seed, max_tokens=400)[2]["choices"][0]
        if choice["finish_reason"] == "stop":
            tally.check("a recursive schema is followed", "" if is_tree(json.loads(choice["message"]["content"])) else choice["message"]["content"])
    body = {"messages": [{"role": "user", "content": "who?"}], "response_format": schema_format(PERSON), "seed": 3, "max_tokens": 400}
    whole = server.call("POST", "/v1/chat/completions", body)[2]["choices"][0]["message"]["content"]
    says(tally, "a stream joined is the whole", "".join(e["choices"][0]["delta"].get("content", "") for e in server.events("/v1/chat/completions", body)), whole)
    cut = server.chat("who?", response_format=schema_format(PERSON), max_tokens=3)[2]["choices"][0]
    says(tally, "an answer that is cut says so", cut["finish_reason"], "length")
    value = server.chat("x", response_format={"type": "json_object"}, max_tokens=400, seed=1, logit_bias={}, temperature=0.1)[2]["choices"][0]
    tally.check("json_object begins one", "" if value["message"]["content"].lstrip().startswith("{") else value["message"]["content"])
    for schema in ({"type": "object", "properties": {}}, {}, {"type": "object", "additionalProperties": False}, {"type": "string", "maxLength": 65536}):
        answer = server.chat("x", response_format=schema_format(schema), max_tokens=30, seed=2)
        says(tally, f"{json.dumps(schema)} is legal", answer[0], 200)
    text = server.call("POST", "/v1/completions", {"prompt": "x", "response_format": schema_format({"type": "boolean"}), "max_tokens": 9})[2]["choices"][0]["text"]
    tally.check("completions take schemas too", "" if text in ("true", "false") else text)
    logged = server.chat("x", regex="[ab]{4}", max_tokens=9, temperature=0, logprobs=True, top_logprobs=1)[2]["choices"][0]
    entries = logged["logprobs"]["content"]
    tally.check("log-probabilities are the model's, not the constraint's", "" if len(entries) >= 1 and all(e["top_logprobs"][0]["logprob"] >= e["logprob"] for e in entries)
                else str(entries))


def check_refused_schemas(tally, server):
    deep = {"type": "integer"}
    for _ in range(2000):
        deep = [deep]
    cycle = {"$defs": {"A": {"$ref": "#/$defs/A"}}, "$ref": "#/$defs/A"}
    for label, schema, words in (("a circle of references", cycle, ["#/$ref", "itself"]), ("a reference to nothing", {"items": {"$ref": "#/x"}}, ["#/items/$ref"]),
                                 ("an unknown type", {"properties": {"a": {"type": "x"}}}, ["#/properties/a"]),
                                 ("bounds that exclude each other", {"type": "object", "properties": {"a": {"type": "integer", "minimum": 2, "maximum": 1}}, "required": ["a"]},
                                  ["#/properties/a"]),
                                 ("a bad pattern", {"properties": {"p": {"type": "string", "pattern": "("}}}, ["#/properties/p"]),
                                 ("a keyword that cannot be followed", {"type": "array", "uniqueItems": True}, ["uniqueItems"]),
                                 ("what is no schema", 7, ["schema"])):
        refused(tally, f"{label} is refused, with its place", server.chat("x", response_format=schema_format(schema)), 400, *words)
    refused(tally, "a deep schema is refused", server.call("POST", "/v1/chat/completions", '{"messages":[],"response_format":' + "[" * 2000), 400, "levels")
    says(tally, "without `strict` what cannot be followed is left out",
         server.chat("x", response_format=schema_format({"type": "array", "uniqueItems": True}, strict=False), max_tokens=4)[0], 200)
    for name, value in (("grammar", "start: nothing"), ("regex", "("), ("regex", "(" * 20000), ("grammar", ""), ("regex", "a" * 200000), ("grammar", 7)):
        refused(tally, f"{name} {str(value)[:20]!r} is refused", server.chat("x", **{name: value}), 400)
    refused(tally, "two forms at once are refused", server.chat("x", regex="a", grammar="start: \"a\""), 400, "exclude")


def check_grammars(tally, server):
    for seed in range(4):
        text = server.chat("x", regex="(yes|no)( please)?", max_tokens=20, seed=seed)[2]["choices"][0]["message"]["content"]
        tally.check("an expression holds", "" if re.fullmatch("(yes|no)( please)?", text) else text)
        text = server.chat("x", grammar="start: sum\nsum: N (\"+\" N)~2\nN: /[0-9]{2}/", max_tokens=20, seed=seed)[2]["choices"][0]["message"]["content"]
        tally.check("a grammar holds", "" if re.fullmatch(r"\d\d(\+\d\d){2}", text) else text)


def check_choices(tally, server):
    body = {"messages": [{"role": "user", "content": "hello"}], "seed": 40, "max_tokens": 12}
    alone = [server.call("POST", "/v1/chat/completions", {**body, "seed": 40 + i})[2]["choices"][0]["message"]["content"] for i in range(3)]
    status, _, got = server.call("POST", "/v1/chat/completions", {**body, "n": 3})
    says(tally, "three choices are those of three seeds", [c["message"]["content"] for c in got["choices"]], alone)
    says(tally, "their prompt counts once", got["usage"]["total_tokens"] - got["usage"]["completion_tokens"],
         server.call("POST", "/v1/chat/completions", body)[2]["usage"]["prompt_tokens"])
    joined = ["", "", ""]
    for event in server.events("/v1/chat/completions", {**body, "n": 3, "stream_options": {"include_usage": True}}):
        for choice in event["choices"]:
            joined[choice["index"]] += choice["delta"].get("content", "")
    says(tally, "streamed too", joined, alone)
    got = server.call("POST", "/v1/completions", {"prompt": ["Once", "The"], "n": 2, "max_tokens": 4, "temperature": 0, "echo": True})[2]["choices"]
    says(tally, "two prompts, two choices each", [c["text"].split()[0][:3] for c in got], ["Onc", "Onc", "The", "The"])
    refused(tally, "more than the server takes on is refused", server.call("POST", "/v1/completions", {"prompt": ["a"] * 40, "n": 2}), 400, "answers")
    refused(tally, "a suffix is refused", server.call("POST", "/v1/completions", {"prompt": "a", "suffix": "b"}), 400, "suffix")
    check_echo(tally, server)


def check_echo(tally, server):
    """What is echoed has the log-probabilities that it would have as an answer."""
    body = {"prompt": "Once upon", "temperature": 0, "max_tokens": 6, "logprobs": 2}
    plain = server.call("POST", "/v1/completions", body)[2]["choices"][0]
    prompt = "Once upon" + plain["text"]
    ids = server.call("POST", "/v1/completions", {**body, "prompt": prompt, "max_tokens": 1})[2]["usage"]["prompt_tokens"]
    echoed = server.call("POST", "/v1/completions", {**body, "prompt": prompt, "max_tokens": 2, "echo": True})[2]["choices"][0]
    logged = echoed["logprobs"]
    says(tally, "echo: an entry a token of both", [len(logged[k]) for k in ("tokens", "token_logprobs", "top_logprobs", "text_offset")], [ids + 2] * 4)
    says(tally, "echo: the first has no probability", (logged["token_logprobs"][0], logged["top_logprobs"][0]), (None, None))
    says(tally, "echo: texts begin where they say", ["".join(logged["tokens"])[o:o + 1] for o in logged["text_offset"]], [t[:1] for t in logged["tokens"]])
    if logged["tokens"][ids - 6:ids] == plain["logprobs"]["tokens"]:  # cut as they were chosen
        worst = max(abs(a - b) for a, b in zip(logged["token_logprobs"][ids - 6:ids], plain["logprobs"]["token_logprobs"]))
        tally.check("echo: an answer's tokens are as likely as when they were chosen", "" if worst < 1e-4 else f"off by {worst}")
    events = server.events("/v1/completions", {**body, "prompt": prompt, "max_tokens": 2, "echo": True})
    says(tally, "echo: streamed too", [v for e in events if e["choices"][0]["logprobs"] for v in e["choices"][0]["logprobs"]["token_logprobs"]], logged["token_logprobs"])
    none = server.call("POST", "/v1/completions", {**body, "prompt": prompt, "max_tokens": 0, "echo": True})[2]["choices"][0]
    says(tally, "echo: with no token to answer the prompt's are there", none["logprobs"]["token_logprobs"], logged["token_logprobs"][:ids])


def arguments_of(call, label, tally):
    value = json.loads(call["function"]["arguments"])
    fits = set(value) == {"city", "days"} and len(value["city"]) <= 8 and 1 <= value["days"] <= 9
    tally.check(f"{label}: the arguments fit the parameters", "" if fits else call["function"]["arguments"])


def joined_calls(events):
    """As clients put the parts of a stream together."""
    calls = {}
    for event in events:
        for part in event["choices"][0]["delta"].get("tool_calls", []) if event["choices"] else []:
            call = calls.setdefault(part["index"], {"id": part.get("id"), "name": "", "arguments": ""})
            call["name"] += part["function"].get("name") or ""
            call["arguments"] += part["function"].get("arguments") or ""
    return [calls[index] for index in sorted(calls)]


def check_calls(tally, server, label, answer):
    tools = [WEATHER, CLOCK]
    for seed in range(3):
        choice = server.chat("weather?", tools=tools, tool_choice={"type": "function", "function": {"name": "weather"}}, seed=seed, max_tokens=300,
                             parallel_tool_calls=False)[2]["choices"][0]
        if choice["finish_reason"] == "length":
            continue
        calls = choice["message"].get("tool_calls", [])
        says(tally, f"{label}: a named function is called", ([c["function"]["name"] for c in calls], choice["finish_reason"], choice["message"]["content"]),
             (["weather"], "tool_calls", None))
        arguments_of(calls[0], label, tally)
    choice = server.chat("?", tools=[CLOCK], tool_choice="required", max_tokens=300, parallel_tool_calls=False, seed=1)[2]["choices"][0]
    says(tally, f"{label}: a call is required", [c["function"]["name"] for c in choice["message"].get("tool_calls", [])], ["clock"])
    # What the model is made to say is read as a call, whole and in a stream.
    body = {"messages": [{"role": "user", "content": "?"}], "tools": tools, "max_tokens": 200, "grammar": "start: " + json.dumps(answer)}
    choice = server.call("POST", "/v1/chat/completions", body)[2]["choices"][0]
    says(tally, f"{label}: a call is told from text", ([(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in choice["message"].get("tool_calls", [])],
                                                        choice["finish_reason"]), ([("clock", {})], "tool_calls"))
    events = server.events("/v1/chat/completions", body)
    calls = joined_calls(events)
    says(tally, f"{label}: streamed too", ([(c["name"], c["arguments"]) for c in calls], events[-1]["choices"][0]["finish_reason"]), ([("clock", "{}")], "tool_calls"))
    tally.check(f"{label}: calls have ids", "" if calls and calls[0]["id"].startswith("call_") else str(calls))
    text = server.chat("?", tools=tools, grammar="start: \"just text\"", max_tokens=60)[2]["choices"][0]
    says(tally, f"{label}: text stays text", (text["message"]["content"], text["finish_reason"]), ("just text", "stop"))
    none = server.chat("?", tools=tools, tool_choice="none", grammar="start: " + json.dumps(answer), max_tokens=200)[2]["choices"][0]["message"]
    says(tally, f"{label}: with none there are no calls", (none["content"], "tool_calls" in none), (answer, False))


def check_refused_tools(tally, server):
    for label, options in (("tools that are no array", {"tools": 3}), ("a tool without a name", {"tools": [{"type": "function", "function": {}}]}),
                           ("another type of tool", {"tools": [{"type": "web_search"}]}), ("two of one name", {"tools": [CLOCK, CLOCK]}),
                           ("a choice of nothing", {"tool_choice": "required"}), ("a choice that is not offered", {
                               "tools": [CLOCK], "tool_choice": {"type": "function", "function": {"name": "x"}}}),
                           ("an unknown choice", {"tools": [CLOCK], "tool_choice": "maybe"}), ("too many", {"tools": [CLOCK] * 300})):
        refused(tally, f"{label} is refused", server.chat("x", **options), 400, "tool")
    bad = {"type": "function", "function": {"name": "bad", "parameters": {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}}}
    refused(tally, "parameters that cannot be followed are refused, with their place", server.chat("x", tools=[CLOCK, bad], tool_choice="required"), 400,
            "bad", "tools", "#/properties/a/$ref")
    large = [{"type": "function", "function": {"name": f"f{i}", "parameters": {"type": "object", "description": "x" * 2000}}} for i in range(200)]
    refused(tally, "too much of them is refused", server.chat("x", tools=large, tool_choice="required"), 400, "tools", "grammar", "bytes")
    many = [{"type": "function", "function": {"name": f"f{i}", "parameters": WEATHER["function"]["parameters"]}} for i in range(200)]
    body = server.chat("x", tools=many, tool_choice="required", max_tokens=200, seed=4)[2]
    got = body["choices"][0] if "choices" in body else {"finish_reason": body}
    tally.check("200 tools are offered", "" if got["finish_reason"] == "length" or "message" in got and got["message"]["tool_calls"][0]["function"]["name"].startswith("f") else str(got))


def check_embeddings(tally, server):
    def ask(input, **options):
        return server.call("POST", "/v1/embeddings", {"input": input, **options})

    texts = ["Once upon a time", "There was a house", "x"]
    got = ask(texts)[2]
    vectors = [d["embedding"] for d in got["data"]]
    says(tally, "a vector each, in order", [(d["object"], d["index"]) for d in got["data"]], [("embedding", 0), ("embedding", 1), ("embedding", 2)])
    tally.check("of length 1", "" if all(abs(math.sqrt(sum(v * v for v in vector)) - 1) < 1e-5 for vector in vectors) else str([sum(v * v for v in e) for e in vectors]))
    alone = [ask(text)[2]["data"][0]["embedding"] for text in texts]
    says(tally, "several are as each alone", vectors, alone)
    packed = base64.b64decode(ask(texts[0], encoding_format="base64")[2]["data"][0]["embedding"])
    says(tally, "base64 is the same", [struct.pack("<f", v) for v in vectors[0]], [packed[i:i + 4] for i in range(0, len(packed), 4)])
    short = ask(texts[0], dimensions=16)[2]["data"][0]["embedding"]
    norm = math.sqrt(sum(v * v for v in vectors[0][:16]))
    tally.check("fewer dimensions are the first, stretched", "" if len(short) == 16 and max(abs(a - b / norm) for a, b in zip(short, vectors[0])) < 1e-5 else str(short))
    one = [ask([5], pooling=pooling)[2]["data"][0]["embedding"] for pooling in ("mean", "last")]
    says(tally, "of one token mean and last are the same", one[0], one[1])
    pooled = [ask([5, 6, 7], pooling=pooling)[2]["data"][0]["embedding"] for pooling in ("mean", "last")]
    tally.check("of three they are not", "" if pooled[0] != pooled[1] else "they are")
    usage = ask([[5, 6], [7]])[2]["usage"]
    says(tally, "ids are taken, and counted", usage, {"prompt_tokens": 3, "total_tokens": 3})
    for label, body in (("no input", {}), ("too many dimensions", {"input": "a", "dimensions": 10**6}), ("an unknown pooling", {"input": "a", "pooling": "max"}),
                        ("an unknown format", {"input": "a", "encoding_format": "hex"}), ("a number", {"input": 3}), ("nothing", {"input": []}), ("too long a text", {"input": "word " * 20000})):
        refused(tally, f"embeddings: {label} is refused", server.call("POST", "/v1/embeddings", body), 400)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        says(tally, "8 at once get the same", list(pool.map(lambda _: ask(texts[1])[2]["data"][0]["embedding"], range(8))), [vectors[1]] * 8)


def check_pooling(tally, args, artifact):
    with Server(args, artifact, "--pooling", "last") as server:
        asked = [server.call("POST", "/v1/embeddings", {"input": [5, 6, 7], **more})[2]["data"][0]["embedding"] for more in ({}, {"pooling": "last"}, {"pooling": "mean"})]
        tally.check("the server's pooling holds unless a request names one", "" if asked[0] == asked[1] != asked[2] else "it does not")


def check_client(tally, server):
    """The official Python client."""
    try:
        import openai
        import pydantic
    except ImportError:
        tally.skip("the official client is not installed: tools/setup installs it into build/venv")
        return
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)

    class Pet(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=10)
        legs: int = pydantic.Field(ge=0, le=8)
        tame: bool

    messages = [{"role": "user", "content": "a pet"}]
    for seed in range(5):
        try:
            pet = client.chat.completions.parse(model="tiny", messages=messages, response_format=Pet, max_tokens=400, seed=seed).choices[0].message.parsed
            tally.check("client: parse gives the object", "" if isinstance(pet, Pet) and 0 <= pet.legs <= 8 else str(pet))
            break
        except openai.LengthFinishReasonError:
            continue
    else:
        tally.check("client: parse gives the object", "no answer of five came to its end")
    called = client.chat.completions.create(model="tiny", messages=messages, tools=[CLOCK], tool_choice="required", parallel_tool_calls=False, max_tokens=300)
    call = called.choices[0].message.tool_calls[0]
    says(tally, "client: a call", (call.type, call.function.name), ("function", "clock"))
    more = messages + [called.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "12:00"}]
    says(tally, "client: its result is taken", client.chat.completions.create(model="tiny", messages=more, tools=[CLOCK], max_tokens=2).usage.completion_tokens, 2)
    with client.chat.completions.stream(model="tiny", messages=messages, tools=[CLOCK], tool_choice="required", parallel_tool_calls=False, max_tokens=300) as stream:
        final = stream.get_final_completion()
    says(tally, "client: a call in a stream", final.choices[0].message.tool_calls[0].function.name, "clock")
    several = client.chat.completions.create(model="tiny", messages=messages, n=3, max_tokens=4, logprobs=True, top_logprobs=2)
    says(tally, "client: three choices with log-probabilities", [len(c.logprobs.content) for c in several.choices], [4, 4, 4])
    embedded = client.embeddings.create(model="tiny", input=["a", "b"])
    tally.check("client: embeddings", "" if len(embedded.data) == 2 and abs(sum(v * v for v in embedded.data[0].embedding) - 1) < 1e-4 else str(embedded.usage))
    try:
        client.chat.completions.create(model="tiny", messages=messages, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"$ref": "#/no"}}})
        tally.check("client: a bad schema is an error", "it is none")
    except openai.BadRequestError as error:
        tally.check("client: a bad schema is an error", "" if "#/$ref" in str(error) else str(error))


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models-gguf", "qwen3-q5_0.gguf")
    harness.need_tools(args, "cortiq-compile", "cortiq-serve")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        for label, (example, answer) in FORMATS.items():
            source, artifact = scratch.path("m.gguf"), scratch.path("m.cqa")
            gguf_edit.with_text(model, source, "tokenizer.chat_template", SHOWN.replace("EXAMPLE", example.replace("{", "{ ").replace("{ }", "{}")) + TURNS)
            subprocess.run([os.path.join(args.bin, "cortiq-compile"), source, "-o", artifact], check=True, stdin=subprocess.DEVNULL)
            with Server(args, artifact, "--sessions", "2", "--queue", "64") as server:
                check_calls(tally, server, label, answer)
                if label != "hermes":
                    continue
                check_refused_tools(tally, server)
                check_schemas(tally, server)
                check_refused_schemas(tally, server)
                check_grammars(tally, server)
                check_choices(tally, server)
                check_embeddings(tally, server)
                check_client(tally, server)
                says(tally, "nothing runs any more", server.metrics()["cortiq_requests_running"], 0)
        check_pooling(tally, args, artifact)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
