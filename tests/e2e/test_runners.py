# SPDX-License-Identifier: BSD-2-Clause
"""The programs that run the tests: what dies, says nothing, runs nothing or is tried too often is a
failure."""
import fcntl
import glob
import os
import re
import shutil
import stat
import subprocess
import sys
import textwrap
import threading
import time

import cases
import harness
import machine
import retries

QUIET = machine.Reading(10**10, 10**10, 0)

# Stands for ../shared/devcases/run_cases.py: it has what case_ways.py takes hold of.
RUNNER = '''
import json, os, subprocess, sys, types
def load_profile(path, mode, hz, want_unit=None):
    global loaded
    loaded = path
    return types.SimpleNamespace(samples=[])
def cpu_between(rows, begin, end): return 0
class TruthLog:
    def __init__(self, tmp): pass
    def window(self, begin, end): return {}
def run_case(case, env, options):
    tmp = os.path.join(env.work, "run", case.id)
    os.makedirs(tmp, exist_ok=True)
    out = os.path.join(tmp, "profile.out")
    before_profile(case, env, tmp)
    words = {"{mode}": case.j.get("mode", "cpu"), "{pid}": "1", "{hz}": "99", "{duration}": "1",
             "{out}": out, "{probe}": "python:gc__start", "{binary}": "/usr/bin/python3"}
    command = options.profiler
    for key, value in words.items():
        command = command.replace(key, value)
    result = {"id": case.id, "status": "fail", "checks": [],
              "profiler_rc": subprocess.call(command, shell=True)}
    TruthLog(tmp)
    load_profile(out, "cpu", 99)
    return check(case, env, result)
def main():
    with open(sys.argv[1] + "/d01/case.json", encoding="ascii") as file:
        case = types.SimpleNamespace(id="d01", j=json.load(file))
    env = types.SimpleNamespace(work=sys.argv[sys.argv.index("--work") + 1])
    options = types.SimpleNamespace(profiler=sys.argv[sys.argv.index("--profiler") + 1])
    result = run_case(case, env, options)
    return 0 if result["status"] == "pass" else 1
'''
# `pid` fails in the first run of the program.
ONCE = "def before_profile(case, env, tmp):\n    env.again = os.path.exists(env.work + '/again')\n"
FIRST_FAILS = """
    open(env.work + '/again', 'w').close()
def check(case, env, result):
    if loaded.endswith('.pid') and not env.again:
        return dict(result, checks=[('FAIL', 'share', '0.1 of 9', '>=0.5')])
    return dict(result, status='pass', checks=[('ok', 'share', '0.6 of 9', '>=0.5')])
"""
FAKES = {
    "well": "def before_profile(case, env, tmp): pass\n"
    "def check(case, env, result): return dict(result, status='pass', checks="
    "[('ok', 'x', '1', '1')])\n",
    "dies": "def before_profile(case, env, tmp): os._exit(0)\n",
    "is_killed": "def before_profile(case, env, tmp): os.kill(os.getpid(), 9)\n",
    "checks_nothing": "def before_profile(case, env, tmp): pass\n"
    "def check(case, env, result): return dict(result, status='pass')\n",
    "says_otherwise": "def before_profile(case, env, tmp): pass\n"
    "def check(case, env, result): os._exit(0)\n",
    "dies_in_the_retry": ONCE + "    if os.path.exists(env.work + '/again'): os._exit(0)\n"
    + FIRST_FAILS,
    "fails_once": ONCE + FIRST_FAILS,
    "all_fail_once": ONCE + FIRST_FAILS.replace("loaded.endswith('.pid') and ", ""),
}


def write_program(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)
    return path


def a_profile():
    from test_pyprof import make
    return make()[0]


def run_cases(fake, pyprofd_rc=0, options=(), case='{"id": "d01"}', directory=None):
    """(exit status, output) of cases.py with a runner and a pyprofd that are not the real ones.
    DIRECTORY/commands has what pyprofd is called with."""
    directory = directory or harness.temporary()
    os.makedirs(directory + "/cases/d01")
    with open(directory + "/cases/d01/case.json", "w", encoding="ascii") as file:
        file.write(case)
    with open(directory + "/cases/run_cases.py", "w", encoding="ascii") as file:
        file.write(RUNNER + FAKES[fake] + "if __name__ == '__main__': sys.exit(0)\n")
    profile = a_profile()
    # Writes its profile, and then ends as it is told.
    pyprofd = write_program(
        directory, "pyprofd", '#!/bin/sh\necho "$@" >> %s/commands\n'
        'for out; do :; done\ncase $out in */) mkdir -p "$out"; '
        'out=$out/x.pb.gz;; esac\ncp %s "$out"\nexit %d\n' % (directory, profile, pyprofd_rc))
    pyprof = write_program(directory, "pyprof", '#!/bin/sh\n[ "$1" = report ] && exit 0\n'
                           'while [ "$1" != -o ]; do shift; done\ncp %s "$2"\n' % profile)
    done = subprocess.run(
        [sys.executable, os.path.join(harness.HERE, "cases.py"), *options], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, universal_newlines=True, check=False, env=dict(
            os.environ, CASES=directory + "/cases", CASES_WORK=directory + "/work", PYPROFD=pyprofd,
            PYPROF=pyprof))
    return done.returncode, done.stdout


def last(said):
    return said.strip().splitlines()[-1]


def test_cases_that_pass_pass():
    rc, said = run_cases("well")
    assert rc == 0 and last(said) == "3 passed, 0 failed, 0 skipped", said


def ways_of(mode):
    """What pyprofd is called with for a case of that mode, sorted, without where the output
    goes."""
    directory = harness.temporary()
    rc, said = run_cases("well", case='{"id": "d01", "mode": "%s"}' % mode, directory=directory)
    with open(directory + "/commands", encoding="utf-8") as file:
        called = sorted(line.split(" -o ")[0] for line in file)
    assert rc == 0 and last(said) == "%d passed, 0 failed, 0 skipped" % len(called), said
    return called


def test_probes_have_two_ways_and_allocations_one():
    assert ways_of("usdt") == [
        "--hz 99 --duration 1 --pid 1 --probe usdt:/usr/bin/python3:python:gc__start",
        "--hz 99 --duration 1 --probe usdt:/usr/bin/python3:python:gc__start"
    ]
    assert ways_of("memory") == ["--hz 99 --duration 1 --pid 1 --events alloc"]
    assert ways_of("gil") == [
        "--hz 99 --duration 1", "--hz 99 --duration 1 --events gil",
        "--hz 99 --duration 1 --pid 1 --events gil"
    ]


def test_cases_that_are_left_to_check_long_are_told():
    assert run_cases("well", options=["--few"])[1].count("left to check-long") == 0
    assert cases.left_of(["d01_json_regex", "d02_named_threads"]) == ["d01_json_regex"]


def test_a_runner_that_dies_fails_its_case():
    for fake in "dies", "is_killed", "checks_nothing", "says_otherwise":
        rc, said = run_cases(fake)
        assert rc == 1 and last(said) == "0 passed, 3 failed, 0 skipped", (fake, said)


def test_two_cases_run_at_a_time_but_those_of_the_gil():
    both, running = threading.Barrier(2, timeout=20), []

    class Fake:
        modes = {"a": "cpu", "g": "gil", "b": "offcpu", "h": "gil"}

        def run(self, name):
            running.append(name)
            if name in "ab":
                both.wait()
            else:
                assert running == [name], running
                time.sleep(0.1)
            running.remove(name)
            return {"pid": name}
    harness.need(os.cpu_count() > 1, "one CPU: one program at a time")
    assert dict(cases.run_all(Fake(), list("agbh"))) == {name: {"pid": name} for name in "agbh"}


def test_a_retry_counts_and_is_told():
    rc, said = run_cases("fails_once")
    assert rc == 0 and last(said) == "3 passed, 0 failed, 0 skipped, 1 retried", said
    rc, said = run_cases("all_fail_once")
    assert rc == 0 and last(said) == "3 passed, 0 failed, 0 skipped, 1 retried", said


def test_a_retry_that_dies_fails_its_case():
    rc, said = run_cases("dies_in_the_retry")
    assert rc == 1 and last(said) == "0 passed, 3 failed, 0 skipped, 1 retried", said


def test_many_failures_are_not_tried_again():
    failed = ["test %d" % number for number in range(10)]
    assert retries.chosen(failed, 249) == [] and retries.chosen(failed, 250) == failed


def test_a_pyprofd_that_crashes_after_writing_fails_its_case():
    rc, said = run_cases("well", 139)
    assert rc == 1 and last(
        said) == "0 passed, 3 failed, 0 skipped" and "pyprofd ended with 139" in said, said
    assert "once more" not in said, said


def test_a_case_of_no_name_is_an_error():
    directory = harness.temporary()
    write_program(directory, "run_cases.py", "")
    done = subprocess.run(
        [sys.executable, os.path.join(harness.HERE, "cases.py"), "nothing"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, universal_newlines=True, check=False, env=dict(
            os.environ, CASES=directory))
    assert done.returncode == 2 and "no case matches nothing" in done.stdout, done.stdout


# ---------------------------------------------------------------- what was stolen

def result(got="1.013e+09", **more):
    return dict(
        {
            "status": "fail", "truth": {"duration": 6e9, "cpu": 5e9},
            "checks": [("FAIL", "amount run;dot", got, "8.353e+08+-15%"),
                       ("ok", "threads", "missing [], 4 tids", ">=4 tids")]
        }, **more)


def meanwhile(stolen_s, busy_s=10):
    return machine.Reading(busy_s * 1e9, 1e9, stolen_s * 1e9)


def test_stolen_time_explains_no_more_than_the_programs_part():
    # 0.052 s a second too much, in 6 s 0.31 s; the program had half of the busy time.
    assert cases.judge(result(), "cpu", meanwhile(0.7)).status == "pass"
    assert "were stolen" in cases.judge(result(), "cpu", meanwhile(0.7)).lines[0]
    assert cases.judge(result(), "cpu", meanwhile(0.5)).status == "fail"
    assert cases.judge(result(), "cpu", meanwhile(0)).status == "fail"


def test_stolen_time_excuses_nothing_else():
    assert cases.judge(result("0.6e+09"), "cpu", meanwhile(9)).status == "fail"
    assert cases.judge(result(), "offcpu", meanwhile(9)).status == "fail"
    share = [("FAIL", "share dot", "0.881 of 682", ">=0.97")]
    assert cases.judge(result(checks=share), "cpu", meanwhile(9)).status == "fail"


def test_nothing_against_nothing_is_no_pass():
    none = [("ok", "amount nap", "0", "0+-12%")]
    assert cases.judge(result(status="pass", checks=none), "cpu", QUIET).status == "error"
    assert cases.judge(None, "cpu", QUIET).status == "error"


# ---------------------------------------------------------------- run.py

TESTS = '''
import glob
import os
import re
import harness
DIRECTORY = os.environ["FAKE_DIRECTORY"]
def first(name):
    path = os.path.join(DIRECTORY, name)
    seen = os.path.exists(path)
    open(path, "w").close()
    return not seen
def test_fails_once():
    assert not first("fails_once")
def test_skips_the_second_time():
    if first("skips"):
        raise AssertionError("fails")
    harness.need(False, "no more")
def test_passes():
    pass
def test_fails():
    raise AssertionError("fails")
'''


ALONE_TESTS = '''
import os
import time
def test_light():
    open(os.environ["FAKE_DIRECTORY"] + "/light", "w").close()
def test_alone():
    assert not os.path.exists(os.environ["FAKE_DIRECTORY"] + "/work")
    assert len(os.listdir(os.environ["FAKE_DIRECTORY"] + "/sleepers")) == 2
test_alone.alone = True
def sleeper(name):
    import harness
    open(os.environ["FAKE_DIRECTORY"] + "/sleepers/" + name, "w").close()
    directory = os.environ["FAKE_DIRECTORY"] + "/sleepers"
    harness.wait_for(lambda: len(os.listdir(directory)) == 2, 10, "the other sleeper")
    assert not os.path.exists(os.environ["FAKE_DIRECTORY"] + "/work")
def test_one_sleeper():
    sleeper("one")
def test_other_sleeper():
    sleeper("other")
test_one_sleeper.alone = test_other_sleeper.alone = "sleepers"
def test_computes(number):
    import harness
    directory, cpus = os.environ["FAKE_DIRECTORY"] + "/computing/", os.cpu_count()
    assert not os.path.exists(os.environ["FAKE_DIRECTORY"] + "/work")
    open(directory + "begun%d" % number, "w").close()
    names = os.listdir(directory)
    assert sum("begun" in n for n in names) - sum("ended" in n for n in names) <= cpus, names
    if number < cpus:
        harness.wait_for(lambda: all(os.path.exists(directory + "begun%d" % n)
                                     for n in range(cpus)), 10, "one a CPU")
    time.sleep(0.3)  # as if it computed
    open(directory + "ended%d" % number, "w").close()
test_computes.cases = lambda: [(str(number), number) for number in range(os.cpu_count() + 2)]
test_computes.alone = "one a CPU"
'''


def run_tests(pattern, *options):
    directory = harness.temporary()
    with open(directory + "/test_fakes.py", "w", encoding="ascii") as file:
        file.write(TESTS)
    done = subprocess.run([
        os.path.join(harness.HERE, "run.py"), "-k", pattern, *options, directory + "/test_fakes.py"
    ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                          env=dict(os.environ, FAKE_DIRECTORY=directory))
    return done.returncode, done.stdout


FEW_TESTS = """
import harness
VERSIONS = (3, 6), (3, 9), (3, 11), (3, 12), (3, 12), (3, 15)
PYTHONS = [harness.Interpreter("%d.%d" % v, [], v, "") for v in VERSIONS]
def test_each(python):
    assert python
test_each.cases = lambda: [("%s-%d" % (p.label, number), p) for number, p in enumerate(PYTHONS)]
test_each.few = harness.each_chain
def test_every(python):
    assert python
test_every.cases = test_each.cases
def test_long():
    pass
test_long.few = False
"""


def test_what_is_left_to_check_long_is_told_and_runs_there():
    directory = harness.temporary()
    with open(directory + "/test_fakes.py", "w", encoding="ascii") as file:
        file.write(FEW_TESTS)

    def told(*options):
        return subprocess.run(
            [os.path.join(harness.HERE, "run.py"), *options, directory + "/test_fakes.py"],
            check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout
    said = told("--few")
    assert last(said) == "9 passed, 0 failed, 0 skipped", said
    assert "# left to check-long: 4 (fakes.each 3, fakes.long 1)\n" in said, said
    kept = [line for line in told("--few", "--list").splitlines() if "each" in line]
    assert kept == ["fakes.each[3.6-0]", "fakes.each[3.11-2]", "fakes.each[3.15-5]"], kept
    said = told()
    assert last(said) == "13 passed, 0 failed, 0 skipped" and "left to" not in said, said


def test_ways_to_choose_few():
    every = [("%d.%d %s" % (v + (how, )), (harness.Interpreter("", [], v, ""), how))
             for v in ((3, 10), (3, 14)) for how in "ab"]
    assert [label for label, _ in harness.ends(every)] == ["3.10 a", "3.14 b"]
    assert [label for label, _ in harness.newest(every)] == ["3.14 b"]
    assert [label for label, _ in harness.each_chain(every)] == ["3.10 a", "3.14 b"]
    assert sorted(label for label, _ in harness.each_version(every)) == ["3.10 a", "3.14 a"]
    for few in harness.ends, harness.newest, harness.each_chain, harness.each_version:
        assert few([]) == [] and few(every[:1]) == every[:1], few


def test_functions_without_a_case_in_make_check_are_these():
    """A function is left to check-long as a whole by its own `few = False` alone, and few are; no
    `few` that chooses cases finds none."""
    listed = {
        options: subprocess.run([os.path.join(harness.HERE, "run.py"), *options, "--list"],
                                check=True, stdout=subprocess.PIPE,
                                universal_newlines=True).stdout.split("\n")
        for options in ((), ("--few", ))
    }
    functions = {
        options: {name.partition("[")[0] for name in names} for options, names in listed.items()
    }
    assert set(listed["--few",]) < set(listed[()]), "the few are some of all"
    whole = set()
    for path in glob.glob(harness.HERE + "/test_*.py"):
        with open(path, encoding="utf-8") as file:
            said = re.findall(r"^(?:test_\w+\.few = )+False$", file.read(), re.M)
        whole |= {
            os.path.basename(path)[len("test_"):-3] + "." + name
            for line in said for name in re.findall(r"test_(\w+)\.few", line)
        }
    whole.discard("runners.long")  # of a fake above
    assert len(whole) < 30, whole
    assert functions[()] - functions["--few",] == whole, functions[()] ^ functions["--few",]


def test_tests_that_run_alone_wait_for_the_lock():
    directory = harness.temporary()
    with open(directory + "/test_fakes.py", "w", encoding="ascii") as file:
        file.write(ALONE_TESTS)
    os.mkdir(directory + "/sleepers")
    os.mkdir(directory + "/computing")
    with open(directory + "/lock", "w", encoding="ascii") as lock, open(
            directory + "/work", "w", encoding="ascii"):
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen([
            os.path.join(harness.HERE, "run.py"), "--no-retry", "--alone-after", lock.name,
            directory + "/test_fakes.py"
        ], stdout=subprocess.PIPE, universal_newlines=True, env=dict(
            os.environ, FAKE_DIRECTORY=directory))
        harness.wait_for(lambda: os.path.exists(directory + "/light"),
                         what="the test that need not wait")
        time.sleep(0.5)
        os.unlink(directory + "/work")
        fcntl.flock(lock, fcntl.LOCK_UN)
        said = process.communicate()[0]
    count = 4 + os.cpu_count() + 2
    assert process.returncode == 0 and last(said) == "%d passed, 0 failed, 0 skipped" % count, said


def test_no_test_of_that_name_is_an_error():
    rc, said = run_tests("nothing")
    assert rc == 2 and "no test matches nothing" in said, said


def test_retries_are_told():
    rc, said = run_tests("fails_once|passes")
    assert rc == 0 and last(said) == "2 passed, 0 failed, 0 skipped, 1 retried", said


def test_a_second_pass_that_is_not_listed_is_told_and_fails_where_that_is_asked():
    rc, said = run_tests("fails_once|passes")
    assert rc == 0 and "PASSED ONLY AT THE SECOND TRY, and not in tests/flaky.tsv: fakes" in said
    os.environ["RETRIES_FAIL"] = "1"
    rc, said = run_tests("fails_once|passes")
    assert rc == 1 and last(said) == "1 passed, 1 failed, 0 skipped, 1 retried", said


def test_what_is_listed_as_flaky_has_a_cause_and_an_end():
    with open(retries.FLAKY, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file if not line.startswith("#")]
    assert all(len(row) == 3 and row[1] and re.match(r"20\d\d-\d\d-\d\d$", row[2]) for row in rows)
    name = rows[0][0].strip("^").strip("(").partition("|")[0] + ".x"
    assert retries.unlisted([name, "nothing.x"], rows[0][2]) == ["nothing.x"]
    assert retries.unlisted([name], "2999-01-01") == [name]


def test_what_is_as_it_was_is_left_out_and_told():
    rc, said = run_tests("fails$|passes", "--unchanged", "fails$")
    assert rc == 0 and "# unchanged since the last green run: 1 (fails$)" in said, said


def test_a_retry_is_no_skip():
    rc, said = run_tests("skips_the_second|passes")
    assert rc == 1 and last(said) == "1 passed, 1 failed, 0 skipped, 1 retried", said


def test_more_failures_than_a_twenty_fifth_are_not_retried():
    rc, said = run_tests("fails_once|fails$|passes")
    assert rc == 1 and last(said) == "1 passed, 2 failed, 0 skipped", said


def test_sanitizers_are_not_retried():
    rc, said = run_tests("fails_once|passes", "--no-retry")
    assert rc == 1 and last(said) == "1 passed, 1 failed, 0 skipped", said


# ---------------------------------------------------------------- check.sh

with open(os.path.join(harness.TOP, "tests/check.sh"), encoding="utf-8") as script:
    CHECK = script.read()
LINTERS = re.findall(r"tests/lint/(check_\w+\.\w+)", CHECK.partition("\nstep_lint()")[2])


def check(step, floor=1, unit="echo 5 passed, 0 failed, 0 skipped",
          e2e="echo 2 passed, 0 failed, 0 skipped", lint="true", plain="", web="true",
          kernels="true", otelcol="true", **environment):
    """(exit status, output) of check.sh in a tree whose tests are these commands."""
    directory = harness.temporary()
    for name in "unit", "e2e", "lint", "interpreters", "kernel-matrix", "tools":
        os.makedirs("%s/tests/%s" % (directory, name))
    for name, text in (("unit/run.sh", unit), ("e2e/run.py", e2e),
                       ("interpreters/fetch.sh", "touch fetched"), ("lint/check_size.sh", lint),
                       ("kernel-matrix/run.sh", kernels), ("web.sh", web),
                       ("tools/otelcol.sh", otelcol)):
        write_program(directory + "/tests", name, "#!/bin/sh\n%s\n" % text)
    for name in LINTERS:
        if name != "check_size.sh":
            write_program(directory + "/tests/lint", name, "#!/bin/sh\ntrue\n")
    write_program(
        directory, "Makefile",
        "all asan unit-asan-programs unit-plain-programs e2e-programs fakes: ; @true\n"
        "print-unit-programs: ; @echo $(BUILD)/unit\nprint-plain-programs: ; @echo %s\n"
        "web: ; @tests/web.sh\n" % plain)
    write_program(directory, "tests/floors.tsv", "# comment\n%s\t%s\n" % (step, floor))
    write_program(directory, "tests/check.sh", CHECK)
    # check-long runs these tests, too.
    outside = {name: value for name, value in os.environ.items() if name != "CHECK_LONG"}
    done = subprocess.run([directory + "/tests/check.sh", *step.split()], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False,
                          env=dict(outside, BUILD="build", **environment))
    return done.returncode, done.stdout


def test_fewer_tests_than_the_floor_are_a_failure():
    rc, said = check("unit", 5)
    assert rc == 0 and last(said) == "6 passed, 0 failed, 0 skipped", said
    rc, said = check("unit", 6)
    assert rc == 1 and "5 tests were found, 5 ran, and there are 6 at least" in said, said
    rc, said = check("unit", 1, unit="echo 0 passed, 0 failed, 9 skipped")
    assert rc == 1, said
    rc, said = check("e2e", 6, e2e="echo skip e2e: no Python; echo 0 passed, 0 failed, 1 skipped")
    assert rc == 0 and last(said) == "1 passed, 0 failed, 1 skipped", said


def test_what_failed_is_told_with_its_reasons_at_the_end():
    lines = ("not ok a.late (1.0 s, 0.5 s of CPU)", "    a.py:3: too late",
             "not ok b.by_chance (1.0 s, 0.5 s of CPU)", "    b.py:4: too few",
             "ok b.by_chance (1.1 s, 0.5 s of CPU)", "not ok a.late (1.2 s, 0.5 s of CPU)",
             "    a.py:3: later", "1 passed, 1 failed, 0 skipped, 2 retried")
    said = check("e2e", e2e="\n".join("echo '%s'" % line for line in lines))[1]
    end = said[said.index("== all"):]
    assert "failed, e2e: a.late\n    a.py:3: later\n" in end, said
    assert "too late" not in end and "b.py" not in end, said
    said = check("lint", lint="echo '# a remark'; echo a.c: 101 columns; exit 1")[1]
    end = said[said.index("== all"):]
    assert "failed, lint: sizes\n    a.c: 101 columns\n" in end, said


def test_end_to_end_tests_run_beside_the_others_until_they_need_the_machine():
    rc, said = check(
        "e2e unit", unit=
        "for i in $(seq 200); do [ -e begun ] && break; sleep 0.05; done; [ -e begun ] || exit 1\n"
        "sleep 0.5; touch unit-done; echo 5 passed, 0 failed, 0 skipped",
        e2e="touch begun; flock \"$2\" [ -e unit-done ] && echo 2 passed, 0 failed, 0 skipped")
    assert rc == 0 and last(said) == "8 passed, 0 failed, 0 skipped", said
    for e2e in "echo 1 passed, 1 failed, 0 skipped; exit 1", "kill -9 $$", "kill -9 $PPID":
        rc, said = check("unit e2e", e2e=e2e)
        assert rc == 1 and "failed: e2e(" in said and ", 0 failed," not in last(said), said


def test_the_collector_is_built_beside_the_tests():
    """Those that need it wait for the lock; the step's end waits for it, too."""
    rc, said = check(
        "e2e", otelcol="for i in $(seq 200); do [ -e begun ] && break; sleep 0.05; done\n"
        "[ -e begun ] && sleep 0.5 && touch built",
        e2e="touch begun; [ ! -e built ] || exit 1\nflock -s build/tools/otelcol.lock true\n"
        "[ -e built ] && echo 2 passed, 0 failed, 0 skipped", CHECK_LONG="1")
    assert rc == 0 and last(said) == "3 passed, 0 failed, 0 skipped", said


def test_a_program_that_is_being_built_is_waited_for():
    folder = harness.temporary()
    os.mkdir(os.path.join(folder, "tools"))
    program, found = os.path.join(folder, "tools", "made-prof"), []
    harness.PYPROFD = os.path.join(folder, "pyprofd")
    with open(os.path.join(folder, "tools", "made.lock"), "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: found.append(harness.need_tool("made-prof")))
        waiting.start()
        time.sleep(0.3)
        assert not found
        with open(program, "w", encoding="ascii"):
            pass
    waiting.join(30)
    assert found == [program]


def test_the_browser_runs_beside_the_guests():
    meet = ("touch %s; for i in $(seq 200); do [ -e %s ] && break; sleep 0.05; done\n"
            "[ -e %s ] && echo 1 passed, 0 failed, 0 skipped")
    both = {"web": meet % ("web-begun", "guests-begun", "guests-begun"),
            "kernels": meet % ("guests-begun", "web-begun", "web-begun")}
    rc, said = check("web e2e kernels", **both)
    assert rc == 0 and last(said) == "5 passed, 0 failed, 0 skipped", said
    rc, said = check("web e2e kernels", **dict(both, web="touch web-begun; exit 1"))
    assert rc == 1 and "failed: web(1)" in said, said
    rc, said = check("web e2e", web="echo 3 passed, 0 failed, 0 skipped")
    assert rc == 0 and last(said) == "6 passed, 0 failed, 0 skipped", said


def test_units_are_run_with_and_without_sanitizers():
    rc, said = check(
        "unit", plain="plain",
        unit='[ "$*" = "plain build-asan/unit" ] && echo 5 passed, 0 failed, 0 skipped')
    assert rc == 0 and last(said) == "6 passed, 0 failed, 0 skipped", said


def test_units_that_die_are_a_failure():
    for end in ("kill -9 $$", "exit 0", "echo 1 passed, 0 failed, 0 skipped; exit 3",
                "echo 0 passed, 1 failed, 0 skipped; exit 1"):
        rc, said = check("unit", unit=end)
        assert rc == 1 and ", 1 failed," in last(said), (end, said)


def test_an_agent_that_dies_under_sanitizers_is_a_failure():
    rc, said = check("asan")
    assert rc == 0 and last(said) == "3 passed, 0 failed, 0 skipped", said
    for e2e in ("kill -9 $$", "exit 0", "echo 1 passed, 0 failed, 0 skipped; exit 3",
                "echo 0 passed, 1 failed, 0 skipped; exit 1"):
        rc, said = check("asan", e2e=e2e)
        assert rc == 1 and ", 1 failed," in last(said), (e2e, said)


def test_unit_tests_have_the_fetched_interpreters():
    rc, said = check("unit", unit="[ -e fetched ] && echo 5 passed, 0 failed, 0 skipped")
    assert rc == 0, said


def test_a_missing_linter_is_a_skip_with_its_reason():
    rc, said = check("lint", lint="echo no pmccabe; exit 77")
    assert rc == 0 and "skip sizes: no pmccabe" in said, said
    assert last(said) == "%d passed, 0 failed, 1 skipped" % len(LINTERS), said
    rc, said = check("lint", lint="exit 1")
    assert rc == 1, said


def test_what_is_left_to_check_long_is_summed_up():
    e2e = """case " $* " in *" --few "*) echo '# left to check-long: 7 (a 3, b 4)' ;; esac
echo 2 passed, 0 failed, 0 skipped"""
    rc, said = check("e2e", "2\t3", e2e=e2e)
    assert rc == 0 and "left to check-long: 7: e2e(7);" in said and last(
        said) == "3 passed, 0 failed, 0 skipped", said
    # All of them: then the floor is that of all.
    rc, said = check("e2e", "2\t3", e2e=e2e, CHECK_LONG="1")
    assert rc == 1 and "left to check-long" not in said, said
    assert "2 tests were found, 2 ran, and there are 3 at least" in said, said
    rc, said = check("e2e", "2", e2e=e2e, CHECK_LONG="1")
    assert rc == 0, said


def test_the_cpu_time_of_a_step_is_told():
    burn = ("python3 -c 'import time\nwhile time.process_time() < 1.6: pass'; echo 5 passed, 0 "
            "failed, 0 skipped")
    rc, said = check("unit", unit=burn)
    assert rc == 0 and re.search(r"^  unit +\d+ s +2 s of CPU  .*^  in all +\d+ s +[23] s of CPU$",
                                 said, re.M | re.S), said


def test_retries_are_in_the_closing_line():
    two = "echo '# once more, one at a time: a, b'; echo 5 passed, 0 failed, 0 skipped, 2 retried"
    for step, tests in ("e2e", {"e2e": two}), ("unit", {"unit": two}):
        rc, said = check(step, **tests)
        assert rc == 0 and "retried, %s: a, b" % step in said and "retried: 2" in said, said
        assert last(said) == "6 passed, 0 failed, 0 skipped", said


# ---------------------------------------------------------------- changed.py


def test_changed_files_choose_what_looks_at_them():
    sys.path.append(os.path.join(harness.TOP, "tests"))
    import changed
    assert changed.choose(["docs/hacking.md"]) == (set(), set())
    assert changed.choose(["userspace/nothing_of_this_name/a.c"]) is None
    steps, tests = changed.choose(["userspace/render/flame.c", "tests/e2e/test_oom.py"])
    assert "web" in steps and r"^oom\." in tests, (steps, tests)
    assert "tests/unit/elf/test_elf_image.c" in changed.unit_tests(["userspace/elf/elf_image.c"])
    # Each directory of the product is in a row.
    for path in glob.glob(harness.TOP + "/userspace/*/*.c"):
        assert changed.choose([os.path.relpath(path, harness.TOP)]), path


# ---------------------------------------------------------------- unit/run.sh

CMOCKA_ONCE = ("#!/bin/sh\n[ -e %s ] && { echo ok 1 - a; exit 0; }\ntouch %s\necho not ok 1 - "
               "a\nexit 1\n")


def run_units(*programs):
    """(exit status, output) of unit/run.sh on these programs: "passes", "fails", "once",
    "crashes"."""
    directory, paths = harness.temporary(), []
    texts = {
        "passes": "#!/bin/sh\necho ok 1 - a\n", "fails": "#!/bin/sh\necho not ok 1 - a\nexit 1\n",
        "crashes": "#!/bin/sh\nkill -9 $$\n"
    }
    for number, kind in enumerate(programs):
        name = "%s%d" % (kind, number)
        write_program(directory, name,
                      texts.get(kind) or CMOCKA_ONCE % ((directory + "/mark" + name, ) * 2))
        paths.append(os.path.join(directory, name))
    done = subprocess.run([os.path.join(harness.TOP, "tests/unit/run.sh"), *paths],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                          check=False)
    return done.returncode, done.stdout


def test_a_unit_program_that_fails_once_is_told():
    rc, said = run_units("passes", "once")
    assert rc == 0 and last(said) == "2 passed, 0 failed, 0 skipped, 1 retried", said
    assert "not ok" in said and "# once more, one at a time: " in said, said


def test_a_unit_program_that_fails_twice_has_failed():
    for kind in "fails", "crashes":
        rc, said = run_units("passes", kind)
        assert rc == 1 and last(said) == "1 passed, 1 failed, 0 skipped, 1 retried", said


def test_many_unit_programs_that_fail_are_not_run_again():
    rc, said = run_units("passes", "once", "once")
    assert rc == 1 and last(said) == "1 passed, 2 failed, 0 skipped", said


def test_floors_are_near_the_tests_in_the_sources():
    with open(os.path.join(harness.TOP, "tests/floors.tsv"), encoding="utf-8") as file:
        floors = {line.split()[0]: line.split()[-1] for line in file if not line.startswith("#")}
    steps = re.findall(r"^step_(\w+)\(\)",
                       open(os.path.join(harness.TOP, "tests/check.sh"), encoding="utf-8").read(),
                       re.M)
    assert set(steps) == set(floors), (steps, floors)
    unit = 0
    for path in glob.glob(harness.TOP + "/tests/unit/*/*.c") + glob.glob(
            harness.TOP + "/tests/bpf/host/*.c"):
        with open(path, encoding="utf-8") as file:
            # Many are in their tables by a macro of the file's own.
            unit += len(re.findall(r"^static void \w+__\w+\(void \*\*", file.read(), re.M))
    assert int(floors["unit"]) >= 0.85 * unit, "raise unit in tests/floors.tsv: %d tests" % unit
    end_to_end = sum(len(re.findall(r"^def test_", open(path, encoding="utf-8").read(), re.M))
                     for path in glob.glob(harness.HERE + "/test_*.py"))
    assert int(floors["e2e"]
               ) >= 0.85 * end_to_end, "raise e2e in tests/floors.tsv: %d functions" % end_to_end


# ---------------------------------------------------------------- the guests of the kernel matrix

def guest_check(stacks):
    """What guest/check.py says of stacks in folded text: {frames: count}."""
    directory = os.path.join(harness.TOP, "tests", "kernel-matrix", "guest")
    path = os.path.join(harness.temporary(), "x.folded")
    with open(path, "w", encoding="ascii") as file:
        for frames, count in stacks.items():
            file.write("process 7: python;_start;%s %d\n" % (frames, count))
    harness.need(sys.version_info >= (3, 10), "no co_lines() before Python 3.10")
    return subprocess.run([sys.executable, directory + "/check.py", path, "7"],
                          stdout=subprocess.DEVNULL, check=False).returncode


def test_a_guest_whose_stacks_are_cut_fails():
    source = os.path.join(harness.TOP, "tests", "kernel-matrix", "guest", "target.py")
    with open(source, encoding="ascii") as file:
        lines = file.read().split("\n")
    line = {
        name: number for number, text in enumerate(lines, 1) for name in ("module", "outer", "step")
        if text.endswith("# L:" + name)
    }
    begin = lines.index("def inner(count):") + 1
    cut = "<module> (/t/target.py:%d)" % line["module"]
    whole = cut + ";outer (/t/target.py:%d);Worker.step (/t/target.py:%d)" % (
        line["outer"], line["step"])
    deep = {whole + ";inner (/t/target.py:%d)" % (begin + n): 40 for n in (2, 3, 4)}
    assert guest_check(deep) == 0
    assert guest_check(dict(deep, **{cut: 5})) == 0
    assert guest_check(dict(deep, **{cut: 120 * 32})) == 1
    assert guest_check(dict(deep, **{cut: 20})) == 1


# An emulator that boots only as the test wants, and notes how it was asked.
QEMU = """#!/bin/sh
case "$*" in *'-accel kvm'*) accel=kvm ;; *) accel=tcg ;; esac
echo $accel >> %s/asked
case ' '$BOOTS' ' in *" $accel "*)
	echo 'guest: booted 6.1.0 after 1 s'
	echo 'guest: rc=0 after 2 s' ;;
esac
"""


def guest(boots, has_device, flags, options=("6.1",), series=("6.1",)):
    """(exit status of the kernel matrix with these kernels, what it said, the accelerators it asked
    qemu for)"""
    harness.need(
        shutil.which("busybox") and shutil.which("qemu-system-x86_64"), "no busybox or no qemu")
    directory = harness.temporary()
    os.mkdir(directory + "/bin")
    write_program(directory + "/bin", "qemu-system-x86_64", QEMU % directory)
    # What is packed is looked at by nobody.
    write_program(directory + "/bin", "gzip", "#!/bin/sh\nexec cat > /dev/null\n")
    for name in ("cc", "strip", "ldd"):
        write_program(directory + "/bin", name, "#!/bin/sh\ntrue\n")
    for name, text in [("vmlinuz-" + one, "x") for one in series] + [
        ("vmlinuz-%s.release" % one, one + ".0") for one in series
    ] + [("cpuinfo", "flags\t: fpu %s sse\n" % flags)]:
        with open("%s/%s" % (directory, name), "w", encoding="ascii") as file:
            file.write(text)
    if has_device:
        open(directory + "/kvm", "w").close()
    environment = dict(os.environ, PATH="%s/bin:%s" % (directory, os.environ["PATH"]),
                       KERNEL_CACHE=directory, BOOTS=boots, KERNEL_LOGS=directory + "/logs",
                       PYPROFD=harness.PYPROFD, CPUINFO=directory + "/cpuinfo",
                       KVM_DEVICE=directory + "/kvm", CC="cc")
    done = subprocess.run([harness.TOP + "/tests/kernel-matrix/run.sh", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                          check=False, env=environment)
    count = len(series)
    assert last(done.stdout) in ("%d passed, 0 failed, 0 skipped" % count,
                                 "0 passed, %d failed, 0 skipped" % count), done.stdout
    with open(directory + "/asked", encoding="ascii") as file:
        return done.returncode, done.stdout, file.read().split()


def booted(*arguments):
    rc, _, accelerators = guest(*arguments)
    return rc, accelerators


def test_a_guest_gets_kvm_where_there_is_one():
    for flags in "vmx", "svm":
        assert booted("kvm tcg", True, flags) == (0, ["kvm"])
    # A device without the CPU's own virtualization boots nothing.
    assert booted("kvm tcg", True, "vmx_of_no_use") == (0, ["tcg"])
    assert booted("kvm tcg", False, "vmx") == (0, ["tcg"])


def test_a_guest_that_kvm_does_not_boot_is_emulated():
    assert booted("tcg", True, "vmx") == (0, ["kvm", "tcg"])
    assert booted("", True, "vmx") == (1, ["kvm", "tcg"])
    assert booted("", False, "") == (1, ["tcg", "tcg"])


def test_few_guests_are_the_oldest():
    rc, said, asked = guest("tcg", False, "", ["--few"], ["5.10"])
    assert rc == 0 and len(asked) == 1, said
    assert "# left to check-long: 4 (6.1 6.12 6.18 7.2)\n" in said, said
    every = ["5.10", "6.1", "6.12", "6.18", "7.2"]
    rc, said, asked = guest("tcg", False, "", [], every)
    assert rc == 0 and len(asked) == 5 and "left to" not in said, said


# ---------------------------------------------------------------- what is fetched

def mirror(sources=None, more=None):
    """What apt_root.sh takes as the mirror, for sources of apt as these."""
    directory = harness.temporary()
    os.makedirs(directory + "/sources.list.d")
    with open(directory + "/mirrors", "w", encoding="ascii") as file:
        file.write("# near\nhttp://near.example/debian/\tpriority:1\nhttp://far.example/debian\n")
    for name, text in (("sources.list", sources), ("sources.list.d/debian.sources", more)):
        if text:
            with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                file.write(text.replace("DIRECTORY", directory))
    environment = {key: value for key, value in os.environ.items() if key != "DEBIAN_MIRROR"}
    said = [
        subprocess.check_output(
            [shell, "-c",
             ". %s/tests/interpreters/apt_root.sh; apt_root_mirror" % harness.TOP], env=dict(
                 environment, APT_DIRECTORY=directory)).decode().strip() for shell in ("sh", "bash")
    ]
    assert said[0] == said[1], said
    return said[0]


def test_the_mirror_is_that_of_apt():
    assert mirror("deb http://a.example/debian bookworm main\n") == "http://a.example/debian"
    assert mirror("deb [signed-by=/x.gpg arch=amd64] http://b.example/debian/ bookworm main\n"
                  ) == "http://b.example/debian"
    assert mirror("deb cdrom:[x]/ bookworm main\ndeb http://c.example/debian x main\n"
                  ) == "http://c.example/debian"
    assert mirror(
        more="Types: deb\nURIs: http://d.example/debian-security http://d.example/debian\n"
    ) == "http://d.example/debian"
    for slashes in "", "//":
        assert mirror("deb mirror+file:%sDIRECTORY/mirrors bookworm main\n"
                      % slashes) == "http://near.example/debian"
        assert mirror(more="URIs: mirror+file:%sDIRECTORY/mirrors\n" %
                      slashes) == "http://near.example/debian"
    assert mirror("deb file:/srv/debian bookworm main\n") == "file:/srv/debian"


# ---------------------------------------------------------------- packages

APT_GET = """#!/bin/sh
case "$*" in
*install*) ;;
*) exit 0 ;;
esac
echo x >> DIRECTORY/calls
case " $* " in *' in-conflict '*) exit 100 ;; esac
for word; do echo "$word" >> DIRECTORY/installed; done
"""


def deps(optional, programs=()):
    """(what deps.sh said, optional packages that it installed, calls of apt-get to install)"""
    directory = harness.temporary()
    fakes = {
        "apt-get": APT_GET.replace("DIRECTORY", directory), "dpkg-query": "#!/bin/sh\n",
        "apt-cache": "#!/bin/sh\necho '  Candidate: 1'\n",
        **{name: "#!/bin/sh\n" for name in programs}
    }
    for name, text in fakes.items():
        write_program(directory, name, text)
    done = subprocess.run(
        ["sh", harness.TOP + "/tests/deps.sh", "install", "--optional", *optional], check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, env=dict(
            os.environ, PATH="%s:/usr/bin:/bin" % directory))
    assert done.returncode == 0, done.stdout
    found = []
    for name in "installed", "calls":
        path = os.path.join(directory, name)
        found.append(open(path, encoding="ascii").read().split() if os.path.exists(path) else [])
    return done.stdout, sorted(set(found[0]) & set(optional)), len(found[1])


def test_a_package_in_conflict_keeps_no_other_away():
    others = ["package-%d" % number for number in range(24)]
    said, installed, calls = deps(others[:17] + ["in-conflict"] + others[17:])
    assert installed == sorted(others), installed
    assert "tests that need in-conflict will be skipped" in said, said
    assert calls <= 11, "%d calls of apt-get" % calls
    assert deps(["in-conflict"])[1:] == ([], 1)


def test_an_npm_that_came_with_node_is_enough():
    said, installed, calls = deps(["npm"], programs=["npm"])
    assert (said, installed, calls) == ("", [], 0), said


# ---------------------------------------------------------------- fuzz

def fuzz(program, inputs=10):
    directory = harness.temporary()
    paths = [
        write_program(directory, "fuzz_%d" % number, "#!/bin/sh\n" + program) for number in range(3)
    ]
    done = subprocess.run(
        [os.path.join(harness.TOP, "tests/fuzz/run.sh"), directory,
         str(inputs), "0", *paths], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        universal_newlines=True, check=False)
    return done.returncode, last(done.stdout)


def test_a_fuzz_target_that_reaches_nothing_fails():
    runs = ("echo 'stat::number_of_executed_units: 2000'; echo '#2000 DONE cov: %d ft: 4 corp: "
            "1/1b lim: 4 exec/s: 0'\n")
    assert fuzz(runs % 3) == (1, "0 passed, 3 failed, 0 skipped")
    assert fuzz(runs % 30) == (0, "3 passed, 0 failed, 0 skipped")


def test_a_fuzz_target_that_dies_or_runs_little_fails():
    runs = ("echo 'stat::number_of_executed_units: 10' >&2; case $* in *-runs=10*) ;; *) exit 9 ;; "
            "esac\n")
    assert fuzz(runs) == (0, "3 passed, 0 failed, 0 skipped")
    assert fuzz(runs, 11)[0] == 1
    assert fuzz("exit 0\n") == (1, "0 passed, 3 failed, 0 skipped")
    assert fuzz(runs + "kill -9 $$\n") == (1, "0 passed, 3 failed, 0 skipped")
