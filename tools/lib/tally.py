#!/usr/bin/env python3
"""Adds up what ctest ran.

Usage: tally.py [--extra NAME:PASSED:FAILED:SKIPPED ...] JUNIT.xml...

Reads the JUnit files that ctest wrote. A test that tells counts of its own (GoogleTest, lit, or a last line
"N passed, N failed, N skipped") counts as those; any other as one. Prints each failure and each reason for a skip, then one
line "N passed, N failed, N skipped". Exit status 1 when something failed or nothing passed.
"""
import argparse
import re
import sys
import xml.etree.ElementTree as ET

PLAIN = re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
LIT = re.compile(r"^\s*(Passed|Expectedly Failed|Failed|Unresolved|Unexpectedly Passed|Timed Out|Unsupported|Skipped)\s*:\s*(\d+)", re.M)
LIT_COLUMN = {"Passed": 0, "Expectedly Failed": 0, "Unsupported": 2, "Skipped": 2}


def own_counts(text):
    """What the test's own output says: [passed, failed, skipped], or None when it does not count."""
    gtest = [re.findall(rf"^\[  {word}\s*\] (\d+) tests?[.,]", text, re.M) for word in ("PASSED", "FAILED", "SKIPPED")]
    if gtest[0]:
        return [int(column[-1]) if column else 0 for column in gtest]
    plain = PLAIN.findall(text)
    if plain:
        return [int(n or 0) for n in plain[-1]]
    lit = LIT.findall(text)
    if lit:
        counts = [0, 0, 0]
        for word, n in lit:
            counts[LIT_COLUMN.get(word, 1)] += int(n)
        return counts
    return None


def count(case):
    """Counts of one <testcase>: ctest's own verdict decides when it contradicts the output (a crash after the summary)."""
    text = case.findtext("system-out") or ""
    verdict = {"run": 0, "fail": 1}.get(case.get("status"), 2)
    counts = own_counts(text)
    if counts is None or (verdict == 1 and counts[1] == 0) or (verdict == 2 and counts[2] == 0):
        counts = [0, 0, 0]
        counts[verdict] = 1
    return counts


def skip_reasons(text):
    """The sentences that skipped tests gave: GoogleTest prints them after 'Skipped', ours after 'skip'."""
    reasons = re.findall(r"^.*: Skipped\n(.+)$", text, re.M) + re.findall(r"^\s*skip\s+(.+)$", text, re.M)
    return list(dict.fromkeys(reason.strip() for reason in reasons))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", default=[], help="counts of a step that ctest did not run")
    parser.add_argument("junit", nargs="*")
    args = parser.parse_args()
    total = [0, 0, 0]
    failures, skips = [], {}
    for extra in args.extra:
        name, *counts = extra.rsplit(":", 3)
        total = [a + int(b) for a, b in zip(total, counts)]
        if int(counts[1]):
            failures.append(name)
    for path in args.junit:
        for case in ET.parse(path).getroot().iter("testcase"):
            counts = count(case)
            total = [a + b for a, b in zip(total, counts)]
            if counts[1]:
                failures.append(f"{case.get('name')} ({counts[1]})")
            if counts[2]:
                reasons = skip_reasons(case.findtext("system-out") or "") or ["no reason given"]
                for reason in reasons:
                    skips.setdefault(reason, []).append(case.get("name"))
    for reason, names in skips.items():
        shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        print(f"skipped: {shown}: {reason}")
    for failure in failures:
        print(f"FAILED: {failure}")
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
