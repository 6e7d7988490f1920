#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""case_truth.py CASES RESULTS RUN   Failed cases of mode cpu that ask for more than was true of their programs.

CASES: folder of the cases.  RESULTS: what run_cases.py wrote.  RUN: its folder with the profiles of that run.
Prints a line SKIP with the figures for each failed case of which every failed check is explained by the
program's own clocks and by what the hypervisor took meanwhile (host_steal_ns of the profile's facts): the
scheduler leaves that time out of a thread's, a sample that was due then comes late and counts.  All other
failures stand."""
import json
import math
import os
import re
import sys

import pprof

SIGMAS = 2.6  # as run_cases.py allows


def facts(path):
    """Of all comments "facts NAME=NUMBER ..."."""
    found = {}
    for comment in pprof.load(path).comments:
        if comment.startswith("facts "):
            for name, value in re.findall(r"(\w+)=(\d+)", comment):
                found[name] = found.get(name, 0) + int(value)
    return found


def amount_is_explained(got, wanted, stolen):
    """Per second: what was found, `V+-T%`, and what was taken of all CPUs."""
    value, tolerance = (float(x) for x in re.fullmatch(r"(.*)\+-(.*)%", wanted).groups())
    return value * (1 - tolerance / 100) <= got <= value * (1 + tolerance / 100) + stolen


def share_is_explained(got, count, true_share, stolen_share):
    noise = SIGMAS * math.sqrt(true_share * (1 - true_share) / max(count, 1))
    return got >= true_share - noise - stolen_share


def true_share(case, expectation, truth):
    """By the counter that another check of the case names for the same frames; None: there is none."""
    for other in case["expect"]:
        if other["type"] == "amount" and other.get("frames") == expectation["frames"] and other["expect"] in truth:
            return truth[other["expect"]] / truth["cpu"]
    return None


def explain(case, result, steal_ns):
    """What explains all failed checks of the result, or None."""
    truth = result.get("truth", {})
    seconds = truth.get("duration", 0) / 1e9
    if not truth.get("cpu") or not seconds:
        return None
    reasons = ["the hypervisor took %.2f s of CPU time in %.0f s" % (steal_ns / 1e9, seconds)]
    for expectation, (status, said, got, wanted) in zip(case["expect"], result["checks"]):
        if status != "FAIL":
            continue
        number = re.match(r"[\d.e+-]+", got)
        if not number:
            return None
        found = float(number.group())
        if expectation["type"] == "amount" and "+-" in wanted:
            explained = amount_is_explained(found, wanted, steal_ns / seconds)
        elif expectation["type"] == "share" and "min" in expectation:
            share = true_share(case, expectation, truth)
            explained = share is not None and share_is_explained(
                found, int(got.split()[-1]), share, steal_ns / result["weight"])
            reasons.append("by the program's clocks it is %s" % (share and round(share, 3)))
        else:
            explained = False
        if not explained:
            return None
        reasons.append("%s: %s, wanted %s" % (said, got, wanted))
    return "; ".join(reasons)


def main():
    cases, path, run = sys.argv[1:]
    with open(path, encoding="utf-8") as file:
        results = json.load(file)
    for result in results:
        with open(os.path.join(cases, result["id"], "case.json"), encoding="utf-8") as file:
            case = json.load(file)
        profile = os.path.join(run, result["id"], "profile.out")
        if result["status"] != "fail" or case.get("mode", "cpu") != "cpu" or not os.path.isfile(profile):
            continue
        # The runner adds a check of its own at the end; one that failed there is not explained.
        if any(status == "FAIL" for status, *_ in result["checks"][len(case["expect"]):]):
            continue
        reason = explain(case, result, facts(profile).get("host_steal_ns", 0))
        if reason:
            print("SKIP  %s: %s" % (result["id"], reason))


if __name__ == "__main__":
    main()
