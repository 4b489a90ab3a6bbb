"""What the end-to-end scripts share: where the built programs are, how they are called, what a refusal must look like."""
import argparse
import os
import shutil
import socket
import subprocess
import sys
import tempfile

SKIPPED = 77  # ctest's SKIP_RETURN_CODE of every script here
CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cases")
KEY_OF_NOBODY = "00" * 32
ANOTHER_KEY = "required is another key"  # what a refusal says for --require-key; it does not repeat the key, which may be a secret one
MODELS = {"default": os.environ.get("CORTIQ_MODELS", ""), "help": "folder of real models (CORTIQ_MODELS)"}  # for arguments(models=MODELS)
SIGNALS = {-4: "SIGILL", -6: "SIGABRT", -8: "SIGFPE", -7: "SIGBUS", -9: "SIGKILL", -11: "SIGSEGV"}


class Tally:
    """Counts checks and prints each that does not hold; finish() prints the totals and gives the exit status."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, label, why_not):
        """`why_not`: empty or None when the check holds, else the reason it does not."""
        if why_not:
            self.failed += 1
            print(f"  FAIL  {label}: {why_not}", flush=True)
        else:
            self.passed += 1

    def note(self, text):
        print(f"  ok    {text}", flush=True)

    def skip(self, reason, count=1):
        self.skipped += count
        print(f"  skip  {reason}", flush=True)

    def finish(self):
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        if self.failed:
            return 1
        return 0 if self.passed else SKIPPED


def arguments(description, **options):
    """The options every script takes, each with its environment variable: ctest passes the latter."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.environ.get("CORTIQ_BIN", ""), help="folder of the built programs (CORTIQ_BIN)")
    parser.add_argument("--fixtures", default=os.environ.get("CORTIQ_FIXTURES", ""), help="folder of the shared fixtures (CORTIQ_FIXTURES)")
    for name, settings in options.items():
        parser.add_argument("--" + name.replace("_", "-"), **settings)
    args = parser.parse_args()
    if not args.bin:
        parser.error("name the folder of the built programs: --bin or CORTIQ_BIN")
    return args


def skip_all(reason):
    """Ends a script that cannot run here."""
    print(f"  skip  {reason}")
    print("0 passed, 0 failed, 1 skipped")
    sys.exit(SKIPPED)


def need_fixtures(args, *parts):
    path = os.path.join(args.fixtures, *parts)
    if not args.fixtures or not os.path.exists(path):
        skip_all(f"CORTIQ_FIXTURES does not name a folder with {os.path.join(*parts)}")
    return path


def need_model(args, name):
    """A real model, for scripts with models=MODELS."""
    path = os.path.join(args.models, name)
    if not os.path.exists(path):
        skip_all(f"{name} is not in {args.models}: tools/demo fetches it")
    return path


def need_tools(args, *names):
    """Skips the script where a program is not built; a build that has them all (CORTIQ_WHOLE_BUILD=1) fails instead."""
    for name in names:
        if not os.path.exists(os.path.join(args.bin, name)):
            if os.environ.get("CORTIQ_WHOLE_BUILD") == "1":
                sys.exit(f"{name} is missing in {args.bin}")
            skip_all(f"{name} is not built in {args.bin}")


def run(command, timeout=120, input="", **options):
    """Runs a program with `input` on its standard input; CompletedProcess with text, or returncode None after `timeout` seconds."""
    try:
        return subprocess.run(command, capture_output=True, input=input, timeout=timeout, encoding="utf-8", errors="replace", **options)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, None, "", "")


def first_line(result):
    return (result.stderr.strip().splitlines() or ["no message"])[0]


def why_not_success(result):
    if result.returncode is None:
        return "no end within the time limit"
    if result.returncode < 0:
        return f"ended by {SIGNALS.get(result.returncode, result.returncode)}: {first_line(result)}"
    return None if result.returncode == 0 else f"exit status {result.returncode}: {first_line(result)}"


def why_not_refusal(result, output=None):
    """What is wrong with a refusal: it has to be one sentence on stderr, exit status 2, and no output file."""
    if result.returncode is None:
        return "no end within the time limit"
    if result.returncode < 0:
        return f"ended by {SIGNALS.get(result.returncode, result.returncode)}"
    if result.returncode != 2:
        return f"exit status {result.returncode}, expected 2: {first_line(result)}"
    lines = result.stderr.strip().splitlines()
    if len(lines) != 1:
        return f"{len(lines)} lines on stderr, expected one sentence: {lines[:2]}"
    if result.stdout:
        return f"output beside the refusal: {result.stdout[:60]!r}"
    if output is not None and (os.path.exists(output) or leftovers(output)):
        return f"left behind: {os.path.exists(output) and output or leftovers(output)}"
    return None


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def leftovers(output):
    """Files beside `output` that a writer may have begun."""
    folder, name = os.path.split(output)
    return [f for f in os.listdir(folder) if f.startswith(name) or f.startswith("." + name)]


class Scratch:
    """A temporary folder with a numbered name for each output, so that what one call leaves is not blamed on the next."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="cortiq-e2e-")
        self.used = 0

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        shutil.rmtree(self.folder, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    def output(self, suffix):
        self.used += 1
        return self.path(f"out{self.used}{suffix}")


def tiny_models():
    """The generator module in test/cases."""
    if CASES not in sys.path:
        sys.path.insert(0, CASES)
    import tiny_models as module
    return module
