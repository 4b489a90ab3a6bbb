"""What ray_test.py has Ray's own Python do: MODEL.cqa PROMPTS.jsonl ANSWERS; one JSON object on the last line of standard output.

A cluster of two workers on this machine: the Serve example scales from one to both under load, the Data example runs over both.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import time
import urllib.request

import ray
from ray import serve
from ray.cluster_utils import Cluster

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "examples")
PATIENCE = 90  # seconds for the second replica


def ask(url, body, **headers):
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as refusal:
        return {"status": refusal.code, **json.loads(refusal.read())}


def check_serve(port, prompt):
    sys.path.insert(0, os.path.join(EXAMPLES, "ray_serve"))
    import app

    serve.start(http_options={"host": "127.0.0.1", "port": port})
    serve.run(app.app, name="cortiq")
    url = f"http://127.0.0.1:{port}/"
    short = {"prompt": prompt, "max_tokens": 24, "temperature": 0}
    first = ask(url, short)
    keyed = [ask(url, short, serve_multiplexed_model_id="a") for _ in range(4)]
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps({**short, "stream": True}).encode()), timeout=60) as answer:
        streamed = answer.read().decode()
    # Load, until the second replica answers too.
    replicas, answers, begun = set(), [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        while len(replicas) < 2 and time.monotonic() - begun < PATIENCE:
            answers += pool.map(lambda i: ask(url, short, serve_multiplexed_model_id=f"{time.monotonic()}{i}"), range(16))
            replicas |= {answer["replica"] for answer in answers}
    out = {"first": first["tokens"], "text": first["text"], "keyed_kept": [answer["kept"] for answer in keyed], "keyed_replicas": len({answer["replica"] for answer in keyed}),
           "keyed": [answer["tokens"] for answer in keyed], "streamed": streamed, "replicas": len(replicas), "requests": len(answers),
           "wrong": sum(answer["tokens"] != first["tokens"] for answer in answers), "bad": ask(url, {"max_tokens": 1})["status"],
           "seconds": round(time.monotonic() - begun, 1)}
    serve.shutdown()
    return out


def check_data(model, prompts, answers, address):
    done = subprocess.run([sys.executable, os.path.join(EXAMPLES, "ray_data", "batch.py"), model, prompts, answers, "--workers", "2", "--max-tokens", "12"],
                          env=dict(os.environ, RAY_ADDRESS=address), capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        return {"failed": done.stderr[-600:]}
    rows = []
    for name in os.listdir(answers):
        with open(os.path.join(answers, name)) as file:
            rows += [json.loads(line) for line in file]
    return {"rows": rows}


def main(model, prompts, answers, port, prompt):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    for _ in range(2):
        cluster.add_node(num_cpus=2)
    ray.init(address=cluster.address, log_to_driver=False)
    out = {"nodes": sum(node["Alive"] for node in ray.nodes()), "serve": check_serve(int(port), prompt),
           "data": check_data(model, prompts, answers, cluster.address)}
    ray.shutdown()
    cluster.shutdown()
    print("\n" + json.dumps(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
