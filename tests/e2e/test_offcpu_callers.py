# SPDX-License-Identifier: BSD-2-Clause
"""Different callers of one wait site: their shares compared with the program's own clock."""
import math

import harness
import waits

ALONE = "sleepers"
AROUND_NS = 20_000


def share(period, short, long, seconds=harness.times(6, 10)):
    """Of second()'s time: (as profiled, its standard error, by the program's clock)."""
    with harness.Target("callers.py", period, short, long) as target:
        out = harness.profile(target.pid, duration=seconds, hz=None, options=[
            "--events", "offcpu"]).out
        target.stop()
        truth = target.read("callers.json")
    profile = waits.Waits(out, target.pid, "off_cpu")
    assert [name for name, _ in profile.profile.sample_types] == ["off_cpu", "events", "effective"]
    ns, spread, events = {"first": 0, "second": 0}, {"first": 0, "second": 0}, 0
    for sample in profile.profile.samples:
        names = {frame.name for frame in sample.frames} & set(ns)
        if sample.labels.get("pid") != target.pid or not names:
            continue
        (name,), (value, count, effective) = names, sample.values
        ns[name] += value
        spread[name] += value ** 2 / effective if effective else 0
        events += count
    # Who lost the CPU on his way to a wait may find it over: there is none where the thread did not
    # leave the CPU by itself.
    waited = {name: [w[:3] for w in truth[name] if w[3]] for name in ns}
    known = {name: sum(profile.clipped(waited[name])) / 2 for name in ns}
    inside = sum(
        profile.begin_ns <= begin < profile.end_ns for w in waited.values() for begin, _, _ in w)
    assert abs(events - inside) <= 0.03 * inside + 2, (events, inside)
    # What the program's clock sees before and after the switches, and what other programs took
    # there.
    slack = AROUND_NS * inside + sum(
        length for w in truth.values() for _, _, length, _, preempted in w if preempted)
    waits.near(sum(ns.values()), sum(known.values()), 0.03, "the time of all waits", slack)
    p, all_ns = ns["second"] / sum(ns.values()), sum(ns.values())
    error = math.sqrt((1 - p) ** 2 * spread["second"] + p ** 2 * spread["first"]) / all_ns
    wanted = known["second"] / sum(known.values())
    print("one in %d: %.3f, +- %.3f, by its own clock %.3f; %d waits"
          % (period, p, error, wanted, events))
    return p, error, wanted


def check(period, short, long, largest_error):
    p, error, wanted = share(period, short, long)
    assert 0 < error < largest_error, error
    assert abs(p - wanted) < 4 * error, (p, error, wanted)


# The longest first, as these run beside each other.
def test_caller_that_is_rare():
    """One wait in 50; its error rests on few walks."""
    p, error, wanted = share(50, 0.0005, 0.0005, harness.times(12, 20))
    assert abs(p - wanted) < max(4 * error, 0.04), (p, error, wanted)


def test_callers_that_take_turns():
    check(2, 0.001, 0.004, 0.06)


def test_callers_in_sixes():
    check(6, 0.001, 0.001, 0.08)
