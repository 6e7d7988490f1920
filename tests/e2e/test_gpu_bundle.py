# SPDX-License-Identifier: BSD-2-Clause
"""The bundle that asks a machine with a GPU (docs/gpu-results.md), with the stand-ins of CUDA's
libraries and of torch: its table has what they know themselves."""
import ctypes
import ctypes.util
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile

import harness
import test_probes

GPU = os.path.join(harness.TOP, "tests", "gpu")
FAKE_SOURCES = os.path.join(harness.TOP, "tests", "fakes")
NVML = """\
0.gpm.2 35.5
0.gpm.10 12
0.process 4242 1048576 20
error.nvmlDeviceGetPowerUsage 3
"""
CALLED = {"name": "U-1.5", "twin": "U-1.6", "address": "U-1.7", "address-twin": "U-1.8"}


def unpacked():
    """The directory of a bundle that was made, packed and unpacked elsewhere."""
    build = os.path.dirname(harness.PYPROFD)
    for name in "gpu_check", "profile_sums", "pyprofd", "pyprofd-static":
        path = os.path.join(build, "tests", "gpu", name)
        harness.need(os.path.exists(path), "no %s: make gpu-programs" % path)
    directory = harness.temporary()
    packed = os.path.join(directory, "gpu.tar.gz")
    said = subprocess.run([os.path.join(GPU, "run.sh"), "--make", packed], check=True,
                          stdout=subprocess.PIPE, env=dict(os.environ, BUILD=build),
                          cwd=harness.TOP).stdout.decode()
    with tarfile.open(packed) as archive:
        names = {member.name for member in archive if member.isfile()}
        archive.extractall(directory)
    # It says what it packed.
    assert names == {"pyprofd-gpu/" + name for name in re.findall(r"^ +\d+ (\S+)$", said, re.M)}
    return os.path.join(directory, "pyprofd-gpu")


class Answers:
    """What a run of the bundle says."""

    def __init__(self, *words, fakes=None, wrap=(), out=None, **more):
        self.bundle = unpacked()
        self.out = out or os.path.join(os.path.dirname(self.bundle), "out")
        environment = dict(os.environ, **more)
        environment.pop("LD_LIBRARY_PATH", None)
        if fakes:
            environment["LD_LIBRARY_PATH"] = fakes
        run = subprocess.run([*wrap, os.path.join(self.bundle, "run.sh"), "--out", self.out,
                              *words], check=False, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, env=environment, cwd="/")
        self.rc, self.said = run.returncode, run.stdout.decode()
        assert not run.stderr, run.stderr.decode()
        with open(self.path("results.json"), encoding="utf-8") as file:
            results = json.load(file)
        self.head = results["head"]
        self.rows = {row["id"]: row for row in results["rows"]}
        with open(os.path.join(GPU, "questions.tsv"), encoding="utf-8") as file:
            self.questions = [line.rstrip("\n").split("\t") for line in file if line[0] != "#"]
        self.is_the_table()

    def path(self, name):
        return os.path.join(self.out, name)

    def is_the_table(self):
        """All questions in their order, last on the terminal, as in the JSON."""
        lines = [line for line in self.said.splitlines() if line.startswith("| U-")]
        cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
        assert [line[0] for line in cells] == [question[0] for question in self.questions], lines
        for line, (number, tier, question) in zip(cells, self.questions):
            row = self.rows[number]
            assert [str(row["tier"]), row["question"]] == [tier, question], row
            told = row["verdict"] + (": " + row["why"] if row["why"] else "")
            assert line[1:] == [question, row["answer"], row["how"], told], (line, row)
        assert lines[-1] in self.said.splitlines()[-3], self.said
        counts = [sum(row["verdict"] == verdict for row in self.rows.values())
                  for verdict in ("ok", "differs", "not possible here")]
        assert self.said.splitlines()[-1] == (
            "%d ok, %d differ, %d not possible here" % tuple(counts)), self.said
        assert all(row["answer"] and row["how"] for row in self.rows.values()
                   if row["verdict"] != "not possible here"), self.rows
        assert all(row["why"] for row in self.rows.values()
                   if row["verdict"] == "not possible here"), self.rows

    def get(self, number, verdict="ok"):
        row = self.rows[number]
        assert row["verdict"] == verdict, (row, self.said)
        return row["answer"]

    def numbers(self, number, verdict="ok"):
        return [float(n) for n in re.findall(r"\d+(?:\.\d+)?", self.get(number, verdict))]

    def lines(self, name, word):
        with open(self.path(name), encoding="utf-8") as file:
            rows = [line.rstrip("\n").split("\t") for line in file]
        return [row[1:] for row in rows if row[0] == word]


def known_functions():
    with open(os.path.join(harness.TOP, "userspace", "probes", "cuda_functions.c"),
              encoding="utf-8") as file:
        return re.findall(r"^\tX\((cu[A-Z]\w+), DRIVER", file.read(), re.M)


# ---------------------------------------------------------------- the first tier

def functions_are_those_of(answers, fakes):
    names = known_functions()
    driver = ctypes.CDLL(os.path.join(fakes, "libcuda.so.1"))
    there = [name for name in names if hasattr(driver, name)]
    twins = [name for name in names
             if hasattr(driver, name + "_ptsz") or hasattr(driver, name + "_ptds")]
    missing = len(names) - len(there)
    assert missing, "the stand-in has all: U-1.1 is ok then"
    assert answers.numbers("U-1.1", "differs")[:3] == [len(there), len(names), len(twins)]
    assert answers.get("U-1.2").startswith("%d of %d lead" % (len(there), len(there)))
    assert answers.get("U-1.3").startswith("%d of %d lead" % (len(there), len(there)))
    return there


def nvml_is_what_its_file_says(answers):
    assert answers.head["driver"] == "580.95.05", answers.head
    assert answers.get("U-5.1", "differs") == "8 of 9; not nvmlDeviceGetPowerUsage (3)"
    assert answers.get("U-5.3").startswith("supported; 2 of 13: 2, 10"), answers.rows["U-5.3"]
    assert answers.get("U-5.4").startswith("1 rows"), answers.rows["U-5.4"]
    assert "nvmlDevice" in answers.get("U-5.5")


def nvml_file():
    path = os.path.join(harness.temporary(), "nvml")
    with open(path, "w", encoding="ascii") as file:
        file.write(NVML)
    return path


def test_a_user_without_rights_gets_the_first_tier_of_any_build():
    harness.need(shutil.which("setpriv"), "no setpriv")
    fakes = harness.need_fakes("nofp")
    beside = harness.need_fakes()
    out = harness.temporary()
    os.chmod(out, 0o777)
    answers = Answers("--tier", "2", fakes=fakes + ":" + beside, FAKE_NVML=nvml_file(), out=out,
                      wrap=("setpriv", "--reuid=65534", "--clear-groups"))
    assert answers.rc == 1, answers.said
    there = functions_are_those_of(answers, fakes)
    # What gcc makes without frame pointers begins with many things.
    emulated, long_nop, stepped = answers.numbers("U-1.4", "differs")[:3]
    assert emulated + long_nop + stepped == len(there) and stepped > 5, answers.rows["U-1.4"]
    assert answers.get("U-9.1").startswith("1 ms of 6.0 sm_50: 1.0"), answers.rows["U-9.1"]
    assert "cudart.so.12: .symtab yes, asks the driver itself" in answers.get("U-3.2")
    assert answers.get("U-3.6").startswith("libnccl.so.2: "), answers.rows["U-3.6"]
    nvml_is_what_its_file_says(answers)
    assert answers.rows["U-5.2"]["why"] == "only root can become nobody"
    assert answers.rows["U-1.5"]["why"] == answers.rows["U-0.1"]["why"] == "probes need root"
    assert answers.rows["U-1.9"]["why"] == "--tier 2"
    assert "tier 2: not possible here: probes need root" in answers.said, answers.said


def test_without_a_driver_it_says_so_and_ends_with_77():
    harness.need(not ctypes.util.find_library("cuda"), "this machine has a CUDA driver")
    answers = Answers()
    assert answers.rc == 77, answers.said
    asked = {number for number, row in answers.rows.items()
             if row["verdict"] != "not possible here"}
    # Of the kernel there is something to tell; of NVML, where there is one.
    assert {"U-0.1", "U-0.2", "U-0.3"} <= asked, asked
    assert not [n for n in asked if n.startswith(("U-1", "U-2", "U-4", "U-9"))], asked
    for number in ("U-0.4", "U-1.1", "U-1.5", "U-9.1", "U-9.9"):
        why = answers.rows[number]["why"]
        assert why.startswith(("libcuda.so.1: cannot open", "no torch")), answers.rows[number]
    for tier in (1, 2, 3):
        assert "tier %d: not possible here: " % tier in answers.said, answers.said


# ---------------------------------------------------------------- all tiers

def calls_are_the_drivers(answers, truths):
    """Each function that was called in some way, as often as the driver itself says."""
    for way, number in CALLED.items():
        name = "calls." + way
        expected = {}
        for _, label, calls, _ in answers.lines(name, "expect"):
            expected[label] = expected.get(label, 0) + int(calls)
        said = answers.get(number)
        assert said.endswith("all exact"), said
        functions, calls = answers.numbers(number)[:2]
        assert (functions, calls) == (len(expected), sum(expected.values())), (said, expected)
        pid = answers.lines(name, "ready")[0][0]
        counted = {row[1]: 0 for row in answers.lines("calls.sums", "sum") if row[0] == pid}
        for row in answers.lines("calls.sums", "sum"):
            if row[0] == pid:
                counted[row[1]] += int(row[5])
        api = truths[pid]["api"]
        suffix = "" if way in ("name", "address") else "_ptsz"
        for function in ("cuMemsetD8Async", "cuMemcpyPeerAsync", "cuMemcpyAsync",
                         "cuLaunchKernelEx"):
            # One call was before pyprofd.
            assert api[function + suffix]["calls"] == counted[function] + 1 > 1000, (way, function)
    assert len(answers.lines("calls.name", "expect")) > 30
    assert answers.get("U-4.1").startswith("none of "), answers.rows["U-4.1"]


def work_is_the_drivers(answers, truths):
    pid = answers.lines("truth", "ready")[0][0]
    truth = truths[pid]
    kernels = {name: row["calls"] for name, row in truth["kernels"].items()}
    # One launch was before pyprofd.
    assert answers.numbers("U-2.1") == [kernels["pyprofd_spin"]] * 2 + [
        kernels["pyprofd_library"]] * 2, kernels
    assert answers.numbers("U-2.2")[:2] == [kernels["pyprofd_late"] - 1] * 2, kernels
    all_of = sum(kernels.values()) - 1 - kernels["pyprofd_graph"]
    assert answers.numbers("U-9.2") == [all_of] * 2, kernels
    copies = truth["copies"]
    said = dict(re.findall(r"(\w+) (\d+) of", answers.get("U-9.3")))
    assert int(said["cuMemcpyHtoDAsync"]) == copies["htod"]["bytes"], copies
    assert int(said["cuMemcpyDtoH"]) == copies["dtoh"]["bytes"], copies
    waited = answers.numbers("U-9.4")
    known = truth["api"]["cuStreamSynchronize"]
    assert waited[1:3] == [known["calls"]] * 2 == [50] * 2, (waited, known)
    assert abs(waited[0] * 1e6 - known["wait_ns"]) < 0.05 * known["wait_ns"], (waited, known)
    row = answers.rows["U-9.5"]
    recorded, replays, counted, launches = [int(n) for n in re.findall(r"\d+", row["answer"])]
    assert recorded == truth["kernels"]["pyprofd_graph"]["captured"] == 7, row
    assert replays == launches == truth["api"]["cuGraphLaunch"]["executed"] == 20, row
    assert (row["verdict"] == "ok") == (counted in (0, 140)), row


def torch_is_as_it_launched(answers):
    assert answers.head["torch"] == "0.0-stand-in, CUDA 13.0", answers.head
    assert answers.get("U-1.9") == "1000 of 1000 launches, by cuLaunchKernel"
    assert answers.get("U-1.10") == "200 of 200 launches, by cuLaunchKernel"
    row = answers.rows["U-1.11"]
    assert row["answer"].startswith("100 of 100 replays, "), row
    assert answers.rows["U-1.12"]["why"] == "no triton", answers.rows["U-1.12"]
    named, launches = re.match(r"(\d+) of (\d+) ", answers.rows["U-2.3"]["answer"]).groups()
    assert launches == "1200" and named == "1200", answers.rows["U-2.3"]
    assert answers.rows["U-2.4"]["why"] == "every kernel has a name", answers.rows["U-2.4"]
    said = answers.get("U-9.8")
    assert "HtoD 52428800 of 52428800 bytes, DtoH 200 of 200" in said, said
    assert answers.get("U-9.9") == "2 kernels alike", answers.rows["U-9.9"]


def table_shows_what_is_wrong(answers):
    """The same profiles with one call too few, and others too many."""
    def changed(name, change):
        with open(answers.path(name), encoding="utf-8") as file:
            text = file.read()
        path = os.path.join(harness.temporary(), name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(change(text))
        return path

    def ask(mode, *files):
        said = subprocess.run(["awk", "-v", "mode=" + mode,
                               "-f", os.path.join(answers.bundle, "answers.awk"),
                               "-f", os.path.join(answers.bundle, "probed.awk"), *files],
                              check=True, stdout=subprocess.PIPE).stdout.decode()
        return {line.split("\t")[0]: line.split("\t")[1:] for line in said.splitlines()}

    def add(api, count):
        def change(text):
            return re.sub(r"^(sum\t%s\t%s\t.*?\t-\t)(\d+)(\t)" % (pid, api),
                          lambda m: m.group(1) + str(int(m.group(2)) + count) + m.group(3), text,
                          count=1, flags=re.M)
        return change
    pid = answers.lines("calls.name", "ready")[0][0]
    times = {row[1]: int(row[2]) for row in answers.lines("calls.name", "expect")}
    truth = answers.path("calls.name")
    fewer = ask("calls", truth, changed("calls.sums", add("cuMemsetD32Async", -1)))
    wanted = times["cuMemsetD32Async"]
    assert fewer["U-1.5"][0] == "differs", fewer
    assert fewer["U-1.5"][1].endswith("cuMemsetD32Async %d of %d" % (wanted - 1, wanted)), fewer
    assert fewer["U-4.1"][0] == "ok", fewer
    inner = ask("calls", truth, changed("calls.sums",
                                        add("cuMemsetD32Async", times["cuMemsetD8"])))
    assert inner["U-4.1"][:2] == ["differs", "cuMemsetD32Async %d too many, as many as calls of "
                                  "cuMemsetD8" % times["cuMemsetD8"]], inner
    pid = answers.lines("truth", "ready")[0][0]
    truth = answers.path("truth")
    known = ask("truth", truth, changed("truth.sums", add("cuLaunchKernel\tpyprofd_library", 1)))
    assert [known[n][0] for n in ("U-2.1", "U-9.2", "U-9.3", "U-9.4")] == [
        "differs", "differs", "ok", "ok"], known


def test_all_tiers_know_what_the_driver_knows():
    test_probes.need_links()
    fakes = harness.need_fakes()
    truth = harness.temporary()
    answers = Answers(fakes=fakes, FAKE_NVML=nvml_file(), FAKES=fakes, PYTHON=sys.executable,
                      PYTHONPATH=FAKE_SOURCES, PAUSE_S="0.4",
                      FAKE_CUDA_TRUTH=os.path.join(truth, "%p"))
    truths = {}
    for path in glob.glob(os.path.join(truth, "*")):
        with open(path, encoding="utf-8") as file:
            truths[os.path.basename(path)] = json.load(file)
    assert answers.rc == 1, answers.said
    assert answers.head["device"] == "Fake GPU 0" and answers.head["cuda"] == "13.0", answers.head
    assert answers.head["kernel"].split()[1] == os.uname().release, answers.head
    functions_are_those_of(answers, fakes)
    nvml_is_what_its_file_says(answers)
    assert answers.get("U-5.2", answers.rows["U-5.2"]["verdict"]).startswith("8 of 9"), answers.rows
    for number in ("U-0.1", "U-0.3"):
        answers.get(number)
    on, all_of, _, _, off = answers.numbers("U-0.5")
    assert on == all_of == off > 40, answers.rows["U-0.5"]
    without, with_probe, more = answers.numbers("U-0.4")
    assert abs(with_probe - without - more) < 0.02, answers.rows["U-0.4"]
    calls_are_the_drivers(answers, truths)
    work_is_the_drivers(answers, truths)
    torch_is_as_it_launched(answers)
    table_shows_what_is_wrong(answers)
    # What this pyprofd cannot tell is no error, and what it tells is right.
    for number in ("U-9.6", "U-9.7", "U-9.10"):
        assert answers.rows[number]["verdict"] != "differs", answers.rows[number]


test_all_tiers_know_what_the_driver_knows.limit_s = 240
# A pyprofd of all processes would have its probes on the same code.
test_all_tiers_know_what_the_driver_knows.alone = True
