# SPDX-License-Identifier: BSD-2-Clause
"""A failed case is excused by what the hypervisor took and the program's clocks, and by nothing else."""
import case_truth

CASE = {"expect": [
    {"type": "amount", "expect": "dot", "tol": 0.15, "frames": ["run", "dot"]},
    {"type": "share", "frames": ["run", "dot"], "min": 0.97},
    {"type": "threads", "names": ["dot-0"]}]}
STOLEN_NS = 1500000000


def result(amount="1.013e+09", share="0.881 of 682", threads="ok"):
    return {"weight": 6.9e9, "truth": {"duration": 6e9, "cpu": 5.378e9, "dot": 5.012e9}, "checks": [
        ("FAIL", "amount run;dot", amount, "8.353e+08+-15%"),
        ("FAIL", "share run;dot", share, ">=0.97"),
        (threads, "threads", "missing [], 4 tids", ">=4 tids")]}


def test_what_was_stolen_explains_both():
    reason = case_truth.explain(CASE, result(), STOLEN_NS)
    assert "took 1.50 s" in reason and "clocks it is 0.932" in reason and "0.881" in reason, reason


def test_nothing_stolen_explains_nothing():
    assert case_truth.explain(CASE, result(), 0) is None


def test_more_than_was_stolen_is_not_explained():
    assert case_truth.explain(CASE, result(amount="1.3e+09"), STOLEN_NS) is None
    assert case_truth.explain(CASE, result(amount="0.6e+09"), STOLEN_NS) is None
    assert case_truth.explain(CASE, result(share="0.600 of 682"), STOLEN_NS) is None


def test_other_checks_are_not_excused():
    assert case_truth.explain(CASE, result(threads="FAIL"), STOLEN_NS) is None
