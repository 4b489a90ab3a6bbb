#!/usr/bin/env python3
"""The page that cortiq-serve shows at `/`, used in a real browser: a conversation, a stop, an error, a key, text that looks like markup."""
import os
import subprocess
import sys

import browser
import harness
from serve_test import KEY, Server, says

LAST = "[...document.querySelectorAll('.turn')].at(-1)"
IDLE = "document.getElementById('stop').hidden"


def ask(page, text):
    page.eval("document.getElementById('text').focus()")
    page.type(text)
    page.press("Enter")


def turns(page):
    return page.eval("[...document.querySelectorAll('.turn')].map(turn => [turn.className.replace('turn ', ''), turn.textContent])")


def change_requests(page, fields):
    """What the page asks for besides: the model of the tests ends where chance has it."""
    page.eval("window.fetch = (old => (path, options) => old(path, options && options.body ? {...options, body: JSON.stringify({...JSON.parse(options.body), "
              + fields + "})} : options))(window.fetch)")


def check_conversation(tally, page, server):
    page.open(f"http://127.0.0.1:{server.port}/")
    tally.check("the page lists the model", page.wait("document.getElementById('model').value === 'tiny'"))
    change_requests(page, "ignore_eos: true, max_tokens: 24")
    ask(page, "hello <b>there</b>\u00e4")
    tally.check("an answer comes", page.wait(f"{IDLE} && document.querySelectorAll('.turn').length === 2 && {LAST}.textContent.length > 0", 60))
    said = turns(page)
    says(tally, "after the question, which is text though it looks like markup", (said[0], page.eval("document.querySelectorAll('.turn b').length")),
         (["user", "hello <b>there</b>\u00e4"], 0))
    says(tally, "the box is empty again", page.eval("document.getElementById('text').value"), "")
    kept = server.metrics()["cortiq_prompt_tokens_kept_total"]
    ask(page, "and then?")
    tally.check("the conversation goes on", page.wait(f"{IDLE} && document.querySelectorAll('.turn').length === 4 && {LAST}.textContent.length > 0", 60))
    tally.check("with what was said before", "" if server.metrics()["cortiq_prompt_tokens_kept_total"] > kept + 10 else "nothing of it was kept")
    says(tally, "roles alternate", [turn[0] for turn in turns(page)], ["user", "assistant"] * 2)
    says(tally, "the page asks nobody else for anything, and nothing fails in it", page.complaints, [])


def check_stop(tally, page, server):
    page.open(f"http://127.0.0.1:{server.port}/")
    page.wait("document.getElementById('model').value === 'tiny'")
    change_requests(page, "ignore_eos: true, max_tokens: 20000")
    ask(page, "a long one")
    tally.check("a long answer runs, and can be stopped", page.wait(f"!({IDLE}) && {LAST}.textContent.length > 20"))
    page.eval("document.getElementById('stop').click()")
    tally.check("it stops in the page", page.wait(IDLE))
    tally.check("and in the server", server.wait_for(lambda m: m["cortiq_requests_running"] == 0))
    tally.check("what was said stays", "" if len(turns(page)[-1][1]) > 20 else str(turns(page)))
    server.process.kill()
    server.process.wait()
    ask(page, "is anybody there?")
    tally.check("when the server is gone the page says so", page.wait(f"{IDLE} && {LAST}.classList.contains('error') && {LAST}.textContent.length > 0"))


def check_key(tally, page, server):
    page.open(f"http://127.0.0.1:{server.port}/")
    ask(page, "hello")
    tally.check("without the key there is an error to read", page.wait(f"{IDLE} && {LAST}.className === 'turn error' && {LAST}.textContent.includes('key')"))
    page.eval("document.getElementById('key').focus()")
    page.type(KEY)
    page.eval("document.getElementById('key').dispatchEvent(new Event('change'))")
    tally.check("with it the model is listed", page.wait("document.getElementById('model').value === 'tiny'"))
    change_requests(page, "ignore_eos: true, max_tokens: 24")
    ask(page, "hello")
    tally.check("and answers", page.wait(f"{IDLE} && {LAST}.className === 'turn assistant' && {LAST}.textContent.length > 0", 60))


def main():
    args = harness.arguments(__doc__)
    model = harness.need_fixtures(args, "models", "qwen3-q4t.cmf")
    harness.need_tools(args, "cortiq-compile", "cortiq-serve")
    program = browser.find()
    if not program:
        harness.skip_all(f"no browser is installed ({', '.join(browser.PROGRAMS)}): tools/setup installs one where Debian's archive has it")
    tally = harness.Tally()
    with harness.Scratch() as scratch:
        artifact = scratch.path("m.cqa")
        subprocess.run([os.path.join(args.bin, "cortiq-compile"), model, "-o", artifact, "--max-context", "32768"], check=True, stdin=subprocess.DEVNULL)
        with browser.Browser(program) as page:
            with Server(args, artifact) as server:
                check_conversation(tally, page, server)
                check_stop(tally, page, server)
            with Server(args, artifact, key=KEY) as server:
                check_key(tally, page, server)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
