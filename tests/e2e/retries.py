# SPDX-License-Identifier: BSD-2-Clause
"""Which failed tests are run once more.  Shares and counts are samples of a shared machine; but a
retry can hide a fault that comes now and then, so few are allowed and all are told in the closing
line, `..., N retried`.  tests/flaky.tsv lists those that may need it, with a cause and an end
date."""
import datetime
import os
import re

SHARE = 0.04
UNLISTED_SHARE = 0.02  # of the tests; RETRIES_FAIL=1: none
FLAKY = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "flaky.tsv")


def allowed(tests):
    """Of this many tests; one at least."""
    return max(1, int(tests * SHARE))


def chosen(failed, tests):
    """Of the failed ones those to be run once more: all, or none when they are too many.  Says
    so."""
    if not failed:
        return []
    if len(failed) > allowed(tests):
        print("# %d of %d failed, and %d may be run once more: all of these failures stand" % (
            len(failed), tests, allowed(tests)))
        return []
    print("# once more, one at a time: %s" % ", ".join(map(str, failed)))
    return list(failed)


def unlisted(names, today=None):
    """Those that tests/flaky.tsv does not list, or no longer."""
    today = today or datetime.datetime.utcnow().strftime("%Y-%m-%d")
    with open(FLAKY, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    listed = [pattern for pattern, _, until in rows if until >= today]
    return [name for name in names if not any(re.search(p, name) for p in listed)]


def judged(passed_again, tests):
    """Of the tests that passed at their second try those that have failed nevertheless.  Says
    so."""
    names = unlisted(passed_again)
    if not names:
        return []
    print("# PASSED ONLY AT THE SECOND TRY, and not in tests/flaky.tsv: %s" % ", ".join(names))
    if os.environ.get("RETRIES_FAIL") == "1" or len(names) > max(1, int(tests * UNLISTED_SHARE)):
        return names
    return []


def said(again):
    return ", %d retried" % len(again) if again else ""
