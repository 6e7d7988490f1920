# SPDX-License-Identifier: BSD-2-Clause
"""Which failed tests are run once more.  Shares and counts are samples of a shared machine; but a
retry can hide a fault that comes now and then, so few are allowed and all are told in the closing
line, `..., N retried`."""

SHARE = 0.04


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


def said(again):
    return ", %d retried" % len(again) if again else ""
