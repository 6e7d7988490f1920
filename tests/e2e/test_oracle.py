# SPDX-License-Identifier: BSD-2-Clause
"""The oracle's own arithmetic (tests/bench/oracle.py): it accepts what is right, and detects each
kind of error."""
import math
import os
import subprocess
import sys

import harness

BENCH = os.path.join(harness.TOP, "tests", "bench")
sys.path.insert(0, BENCH)
import oracle  # noqa: E402

TRUTH = {"o_first>o_work": 200000000, "o_second>o_work": 800000000}
FIRST = ["main", "o_callers", "o_first", "o_work"]
SECOND = ["main", "o_callers", "o_second", "o_work"]


def stack(frames, count):
    return oracle.Stack(frames, count, count)


def judge(*stacks, case="callers", truth=None, hz=100):
    return oracle.judge(oracle.CASES[case], truth or TRUTH, list(stacks), hz)


def test_truth_has_no_error():
    one = judge(stack(FIRST, 20), stack(SECOND, 80))
    assert abs(one["error"]) < 1e-9 and one["impossible"] == 0 and one["cut"] == 0, one
    assert one["samples"] == 100 and one["due"] == 100 and one["taken"] == 1, one
    assert math.isclose(one["sigma"], 0.04), one


def test_a_wrong_caller_is_an_error_of_the_share():
    one = judge(stack(SECOND, 100))
    assert math.isclose(abs(one["error"]), 0.2) and one["impossible"] == 0, one
    assert one["shares"]["o_first>o_work"] == 0, one


def test_a_caller_that_never_calls_is_impossible():
    one = judge(stack(FIRST, 20), stack(SECOND, 70),
                stack(["o_callers", "o_first", "o_second", "o_work"], 7),
                stack(["o_callers", "o_work"], 3))
    assert one["impossible"] == 10, one
    # What it took from the right place is missing there.
    assert one["worst"] == "o_second>o_work" and math.isclose(one["error"], -0.1), one


def test_a_missing_root_is_cut_and_keeps_its_share():
    one = judge(stack(FIRST, 20), stack(SECOND[2:], 80))
    assert one["cut"] == 80 and one["impossible"] == 0 and abs(one["error"]) < 1e-9, one


def test_a_missing_caller_is_lost_to_its_share():
    one = judge(stack(FIRST, 20), stack(SECOND, 40), stack(["o_work"], 40))
    assert one["cut"] == 40 and math.isclose(one["error"], -0.4), one


def test_missing_samples_are_told_and_change_no_share():
    one = judge(stack(FIRST, 10), stack(SECOND, 40))
    assert one["taken"] == 0.5 and abs(one["error"]) < 1e-9, one


def test_no_sample_at_all_is_no_success():
    one = judge(stack(["main"], 100))
    assert one["taken"] == 0 and math.isclose(one["error"], -0.8) and math.isnan(one["sigma"]), one


def test_what_is_not_measured_does_not_count():
    one = judge(stack(FIRST, 20), stack(SECOND, 80), stack(["main", "o_callers"], 5),
                stack(["main", "join"], 50))
    assert one["samples"] == 100 and abs(one["error"]) < 1e-9, one


def test_value_is_what_a_share_is_of():
    stacks = [oracle.Stack(FIRST, 200, 1), oracle.Stack(SECOND, 800, 1)]
    one = oracle.judge(oracle.CASES["callers"], TRUTH, stacks, 100)
    assert abs(one["error"]) < 1e-9 and one["samples"] == 2, one


def levels(count, bottom):
    return ["o_deep"] + ["o_even", "o_odd"] * (count // 2) + [bottom, "o_work"]


def test_levels_of_a_deep_stack_are_counted():
    truth = {"o_low>o_work": 25, "o_high>o_work": 75, "o_flat>o_work": 0}
    right = stack(levels(40, "o_low"), 25), stack(levels(400, "o_high"), 75)
    assert judge(*right, case="deep", truth=truth)["impossible"] == 0
    assert abs(judge(*right, case="deep", truth=truth)["error"]) < 1e-9
    for wrong in (levels(38, "o_low"), levels(40, "o_high"), levels(398, "o_high"),
                  ["o_deep"] + ["o_even", "o_even"] * 20 + ["o_low", "o_work"],
                  ["o_deep"] + ["o_same"] * 24 + ["o_flat", "o_work"]):
        assert judge(stack(wrong, 1), case="deep", truth=truth)["impossible"] == 1, wrong
    # The root is missing: nobody can say how deep it was.
    assert judge(stack(levels(40, "o_high")[3:], 1), case="deep", truth=truth)["cut"] == 1


def test_slowdown_is_over_the_runs_beside_it():
    found = oracle.slowdowns([(None, 1.0), ("a", 2.2), (None, 1.2), ("b", 1.0), (None, 0.8),
                              ("c", 1.0)])
    assert math.isclose(found["a"], 2.0) and math.isclose(found["b"], 1.0) and math.isclose(
        found["c"], 1.25), found
    assert oracle.slowdowns([("a", 2.0)]) == {}


def parsed(stacks):
    return [(oracle.markers(s.frames), s.value, s.count) for s in stacks]


def test_each_format_is_read():
    assert parsed(oracle.parse_py_spy(
        'process 7:"python3 x";<module> (w.py:9);o_callers (w.py:48);o_first (w.py:3) 12\n')) == [
            (["o_callers", "o_first"], 12, 12)]
    assert parsed(
        oracle.parse_austin(
            "# mode: cpu\nP7;T0:7;/a b/w.py:<module>:9;/a b/w.py:o_callers:48;/a b/w.py:o_first:3 "
            "2054\n"
        )) == [(["o_callers", "o_first"], 2054, 1)]
    assert parsed(
        oracle.parse_sampling("tid:7;w.py:<module>:9;w.py:o_callers:48;w.py:o_first:3 28\n")) == [([
            "o_callers", "o_first"
        ], 28, 28)]
    perf = (
        "\t  18514e [unknown] (/usr/bin/python3.15)\n\t 7f3a py::o_first:/tmp/w.py "
        "(/tmp/perf-7.map)\n"
        "\t 7f3b py::o_callers:/tmp/w.py (/tmp/perf-7.map)\n\n\t 1 [unknown] (x)\n\n")
    assert parsed(oracle.parse_perf(perf)) == [(["o_callers", "o_first"], 1, 1)]
    assert oracle.markers(["o_deep.<locals>.measured", "o_low"]) == ["o_low"]


def test_programs_measure_what_the_cases_know():
    """Each program's keys are calls that its case allows, and no clock is left at 0."""
    for name, case in oracle.CASES.items():
        directory = harness.temporary()
        for mark in ("go", "stop"):
            open(os.path.join(directory, mark), "w").close()
        subprocess.run([sys.executable,
                        os.path.join(BENCH, "workloads", "oracle.py"), name, "2"], check=True,
                       env=dict(os.environ, E2E_DIR=directory), timeout=60)
        with open(os.path.join(directory, "truth.json"), encoding="utf-8") as file:
            truth = harness.json.load(file)
        assert truth["wall_ns"] > 0 and truth["ns"], (name, truth)
        assert all(ns > 0 for ns in truth["ns"].values()), (name, truth)
        assert all(tuple(key.split(">")) in case.edges for key in truth["ns"]), (name, truth)
