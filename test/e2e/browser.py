"""A browser without a window, spoken to over two pipes as its developers' tools are."""
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def find():
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One page in one browser."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(prefix="cortiq-browser-", ignore_cleanup_errors=True)
        theirs_in, self.out = os.pipe()
        self.into, theirs_out = os.pipe()

        def wire():
            # Clear of 3 and 4 first: one of the ends may be there.
            reading, writing = os.dup2(theirs_in, 60), os.dup2(theirs_out, 61)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        # A container's root has no other way; nothing but our own page is opened.
        self.process = subprocess.Popen([program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                                         "--remote-debugging-pipe", "--user-data-dir=" + self.folder.name, "about:blank"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=wire, close_fds=False)
        os.close(theirs_in)
        os.close(theirs_out)
        self.held, self.number, self.session = b"", 0, None
        self.complaints = []  # of the page: exceptions, refusals by its security policy
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()

    def read(self, until):
        while b"\0" not in self.held:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.into], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.into, 65536)
            if not part:
                raise RuntimeError("the browser ended")
            self.held += part
        message, self.held = self.held.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters, **({"sessionId": self.session} if self.session else {})}
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 60
        while True:
            answer = self.read(until)
            if answer.get("method") == "Runtime.exceptionThrown":
                self.complaints.append(answer["params"]["exceptionDetails"].get("exception", {}).get("description", "an exception"))
            elif answer.get("method") == "Log.entryAdded" and answer["params"]["entry"]["level"] == "error":
                self.complaints.append(answer["params"]["entry"]["text"])
            elif answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete'")

    def eval(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition, seconds=30):
        """Nothing once the condition holds, else what is wrong."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if self.eval(condition):
                return ""
            time.sleep(0.05)
        return f"not within {seconds} s: {condition}"

    def type(self, text):
        """As keys would, into what has the focus."""
        self.call("Input.insertText", text=text)

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=13, text="\r" if kind == "keyDown" else "")
