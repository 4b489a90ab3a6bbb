#!/usr/bin/env python3
"""tools/lib/tally.py, which adds up all results: each kind of output it reads, and verdicts that contradict the output."""
import os
import sys
import xml.sax.saxutils

import harness

TALLY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools", "lib", "tally.py")
GTEST = "[==========] 5 tests ran.\n[  PASSED  ] 3 tests.\n[  SKIPPED ] 1 test, listed below:\n[  SKIPPED ] A.b\n[  FAILED  ] 1 test, listed below:\n[  FAILED  ] A.c\n"
GTEST_SKIP = "a_test.cpp:7: Skipped\nCORTIQ_FIXTURES is not set\n\n[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test, listed below:\n"
LIT = "Testing Time: 0.1s\n\nTotal Discovered Tests: 9\n  Unsupported: 1 (11.11%)\n  Passed     : 7 (77.78%)\n  Failed     : 1 (11.11%)\n"
PLAIN = "  skip  no model there\n4 passed, 0 failed, 2 skipped\n"
ROWS = [
    ("googletest", "fail", GTEST, [3, 1, 1]),
    ("googletest with a reason", "run", GTEST_SKIP, [2, 0, 1]),
    ("lit", "fail", LIT, [7, 1, 1]),
    ("plain", "run", PLAIN, [4, 0, 2]),
    ("no counts, passed", "run", "hello\n", [1, 0, 0]),
    ("no counts, failed", "fail", "hello\n", [0, 1, 0]),
    ("not run", "notrun", "", [0, 0, 1]),
    ("crash after a clean summary", "fail", "[  PASSED  ] 3 tests.\n", [0, 1, 0]),
]


def totals(scratch, rows, *flags):
    path = scratch.output(".xml")
    with open(path, "w") as out:
        out.write("<testsuite>")
        for name, status, text, _ in rows:
            out.write(f'<testcase name="{name}" status="{status}"><system-out>{xml.sax.saxutils.escape(text)}</system-out></testcase>')
        out.write("</testsuite>")
    return harness.run([sys.executable, TALLY, *flags, path])


def main():
    harness.arguments(__doc__)
    tally = harness.Tally()
    line = lambda counts: "{} passed, {} failed, {} skipped".format(*counts)
    with harness.Scratch() as scratch:
        for row in ROWS:
            result = totals(scratch, [row])
            last = result.stdout.strip().splitlines()[-1]
            tally.check(row[0], None if last == line(row[3]) else f"{last}, expected {line(row[3])}")
            bad = row[3][1] or not row[3][0]
            tally.check(f"{row[0]}: exit status", None if result.returncode == (1 if bad else 0) else f"{result.returncode}")
        everything = totals(scratch, ROWS, "--extra", "a step:1:0:0", "--extra", "another: step:0:1:0")
        want = line([sum(r[3][i] for r in ROWS) + (i < 2) for i in range(3)])
        tally.check("all rows and two steps", None if everything.stdout.strip().endswith(want) else everything.stdout)
        for text in ("skipped: googletest with a reason: CORTIQ_FIXTURES is not set", "skipped: plain: no model there", "FAILED: another: step"):
            tally.check(f"it says '{text}'", None if text in everything.stdout.splitlines() else everything.stdout)
    return tally.finish()


if __name__ == "__main__":
    sys.exit(main())
