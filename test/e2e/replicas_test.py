#!/usr/bin/env python3
"""Two cortiq-serve behind HAProxy with examples/balancer/haproxy.cfg: requests that begin alike go to the same one, others spread, many at
once overflow, and when one ends the other takes over.
"""
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request

import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
CONFIGURATION = os.path.join(ROOT, "examples", "balancer", "haproxy.cfg")
BEGINNINGS = 12


def call(url, body=None, **headers):
    request = urllib.request.Request(url, json.dumps(body).encode() if body else None, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode()


def wait_for(url):
    for _ in range(300):
        try:
            return call(url)
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(url)


def served(base):
    """Requests that a server has answered."""
    return int(re.search(r"^cortiq_requests_finished_total (\d+)", call(base + "/metrics"), re.M).group(1))


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-compile", "cortiq-serve")
    if not shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin"):
        harness.skip_all("haproxy is not installed: tools/setup installs it")
    haproxy = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        artifact = scratch.path("m.cqa")
        tally.check("compile", harness.why_not_success(harness.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact])))
        ports = [harness.free_port() for _ in range(3)]
        bases = [f"http://127.0.0.1:{port}" for port in ports]
        programs = [subprocess.Popen([os.path.join(args.bin, "cortiq-serve"), artifact, "--port", str(port), "--threads", "1"],
                                     stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for port in ports[:2]]
        env = dict(os.environ, BIND=f"127.0.0.1:{ports[2]}", REPLICA_1=f"127.0.0.1:{ports[0]}", REPLICA_2=f"127.0.0.1:{ports[1]}")
        try:
            for base in bases[:2]:
                wait_for(base + "/healthz")
            tally.check("the configuration", harness.why_not_success(harness.run([haproxy, "-c", "-f", CONFIGURATION], env=env)))
            with open(CONFIGURATION) as file:
                text = file.read()
            # Without the bound of load: while few requests run, it counts one that has just ended, now and then.
            unbounded = scratch.path("unbounded.cfg")
            with open(unbounded, "w") as file:
                file.write(text.replace("hash-balance-factor 150", "hash-balance-factor 0"))
            tally.check("the bound of load", "" if "hash-balance-factor 150" in text else "it is not in the configuration")

            def balance(configuration):
                program = subprocess.Popen([haproxy, "-db", "-f", configuration], env=env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
                programs.append(program)
                wait_for(bases[2] + "/healthz")
                return program

            balancer = balance(unbounded)

            def taken_by(requests):
                """How many of `requests`, sent through the balancer, each replica answered."""
                before = [served(base) for base in bases[:2]]
                for body, headers in requests:
                    call(bases[2] + "/v1/completions", {"max_tokens": 2, **body}, **headers)
                return [served(base) - was for base, was in zip(bases[:2], before)]

            counts = [taken_by([({"prompt": f"Tale number {i}. Once upon a time"}, {})] * 3) for i in range(BEGINNINGS)]
            tally.check("the same prompt goes to the same replica", "" if all(sorted(pair) == [0, 3] for pair in counts) else counts)
            sums = [sum(pair[i] for pair in counts) for i in (0, 1)]
            tally.check("different ones spread", "" if min(sums) >= BEGINNINGS * 3 / 6 else sums)
            keyed = taken_by([({"prompt": f"{i} is a number"}, {"x-affinity": "mine"}) for i in range(6)])
            tally.check("the client's own word counts", "" if sorted(keyed) == [0, 6] else keyed)

            balancer.kill()
            balancer.wait()
            balance(CONFIGURATION)
            before = [served(base) for base in bases[:2]]
            long = {"prompt": "A beginning that everybody uses", "max_tokens": 200, "ignore_eos": True}
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                list(pool.map(lambda _: call(bases[2] + "/v1/completions", long), range(12)))
            pair = [served(base) - was for base, was in zip(bases[:2], before)]
            tally.check("many at once overflow", "" if min(pair) > 0 and sum(pair) == 12 else pair)

            gone = 0 if keyed[0] else 1
            programs[gone].send_signal(signal.SIGTERM)
            programs[gone].wait(30)
            other = served(bases[1 - gone])
            for i in range(4):
                call(bases[2] + "/v1/completions", {"max_tokens": 2, "prompt": f"{i} is a number"}, **{"x-affinity": "mine"})
            tally.check("the other takes over", "" if served(bases[1 - gone]) - other == 4 else "it did not")
        finally:
            for program in programs:
                program.kill()
                program.wait()
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
