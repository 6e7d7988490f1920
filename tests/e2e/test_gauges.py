# SPDX-License-Identifier: BSD-2-Clause
"""Gauges of GPUs, from a stand-in of NVML whose values are those of a file, by a child without
rights.  pyprofd loads it by the loader's own search: LD_LIBRARY_PATH."""
import ctypes
import glob
import os
import re
import shutil
import signal
import subprocess
import time

import harness
import test_probes
import test_pyprof
import test_serve

NAMES = ("utilization", "memory_utilization", "sm_active", "sm_occupancy", "tensor_active",
         "dram_active", "pcie_tx", "pcie_rx", "nvlink_tx", "nvlink_rx", "memory_used", "power",
         "temperature", "sm_clock", "memory_clock")
GPM = NAMES[2:10]
UUID = "GPU-46414b45-0000-0000-0000-%012d"
VALUES = """devices 2
0.name NVIDIA H100 80GB HBM3
0.utilization 97 40
0.memory 85899345920 12884901888
0.power 350040
0.temperature 45
0.clock 1755
0.reasons 0x24
0.gpm.2 35.5
0.gpm.3 22.25
0.gpm.5 11
0.gpm.10 41
0.gpm.20 100
0.gpm.21 50.5
0.gpm.60 2000
0.gpm.61 1000
1.gpm none
1.error.nvmlDeviceGetPowerUsage 3
"""


class Library:
    """A directory with an NVML that others may read, as its child is nobody."""

    def __init__(self, values=VALUES, source=None):
        self.directory = harness.temporary()
        if source is None:
            shutil.copy(os.path.join(harness.need_fakes(), "libnvidia-ml.so.1"), self.directory)
            self.set(values)
        elif source:
            compiler = shutil.which("gcc") or shutil.which("clang-19") or shutil.which("cc")
            harness.need(compiler, "no C compiler")
            path = os.path.join(self.directory, "nvml.c")
            with open(path, "w", encoding="ascii") as file:
                file.write(source)
            subprocess.run([compiler, "-fPIC", "-shared", "-o",
                            os.path.join(self.directory, "libnvidia-ml.so.1"), path], check=True)

    def set(self, values):
        """At once: it is read at each call."""
        path = os.path.join(self.directory, "new")
        with open(path, "w", encoding="ascii") as file:
            file.write(values)
        os.chmod(path, 0o644)
        os.rename(path, os.path.join(self.directory, "libnvidia-ml.values"))

    def start(self, pid, out=None, events="cpu,cuda", options=()):
        out = out or os.path.join(harness.temporary(), "store/")
        return harness.start(out, pid, hz=99, options=["--events", events, "-v"] + list(options),
                             env={"LD_LIBRARY_PATH": self.directory})


def steady():
    """A program that uses CUDA all the time."""
    return harness.Target("cuda_steady.py", env={"FAKES": harness.need_fakes()})


def children(process):
    """name -> pid"""
    found = {}
    for pid in harness.children(process.pid):
        try:
            with open("/proc/%d/comm" % pid, encoding="ascii") as file:
                found[file.read().strip()] = pid
        except OSError:
            pass
    return found


def reader_of(process, other_than=None):
    def there():
        assert process.poll() is None, harness.said(process)
        pid = children(process).get("pyprofd: gauges")
        return pid if pid != other_than else None
    return harness.wait_for(there, 60, "the child that reads gauges")


def await_gauges(process):
    harness.wait_for(lambda: "gauges of " in harness.said(process), 60, "a round of gauges")


def await_words(process, words, limit_s=60):
    harness.wait_for(lambda: words in harness.said(process), limit_s, words)


def tell(path):
    """(the GPUs, the processes by pid and GPU, the others by GPU), each the gauges' [mean, most];
    of a GPU also its uuid, name, seconds, and for how many of these which reasons were there"""
    gpus, processes, others = {}, {}, {}
    profile = harness.load(path)
    names = [name for name, _ in profile.sample_types]
    at = names.index("gauge_sum")
    for sample in profile.samples:
        labels, (total, readings, most) = sample.labels, sample.values[at:at + 3]
        if "gauge" not in labels:
            continue
        device = int(labels["device"].removeprefix("nvml:"))
        unit = 10 if labels.get("unit", "").startswith("0.1 ") else 1
        if "uuid" in labels or "comm" not in labels:
            of = gpus.setdefault(device, {"uuid": labels.get("uuid", ""), "reasons": {},
                                          "name": labels.get("name", ""), "seconds": 0})
            of["seconds"] = max(of["seconds"], readings)
        else:
            of = (processes.setdefault((labels["pid"], device), {"comm": labels["comm"]})
                  if "pid" in labels else others.setdefault(device, {}))
        if "reason" in labels:
            of["reasons"][labels["reason"]] = total / 1000
        else:
            of[labels["gauge"]] = [total / readings / unit, most / unit]
    return gpus, processes, others


def files(process, kind):
    return sorted(glob.glob(os.path.join(process.e2e_out, "*", "*", "*-%s.pb.gz" % kind)))


def ended(process):
    run = harness.finish(process, signal_number=signal.SIGINT)
    assert run.rc == 0, run.err
    return run


def all_told(process):
    """Of each window that has some."""
    return [found for found in map(tell, files(process, "gpu")) if found[0]]


# ---------------------------------------------------------------- values

def test_values_are_those_of_the_file():
    with steady() as program:
        library = Library(VALUES + "0.process %d 123456789 70\n0.process 1 4096 5\n" % program.pid)
        process = library.start(program.pid, options=["--interval", "60s"])
        await_gauges(process)
        time.sleep(2.5)
        ended(process)
        (gpus, processes, others), = all_told(process)
        hopper, older = gpus[0], gpus[1]
        assert hopper["name"] == "NVIDIA H100 80GB HBM3" and hopper["uuid"] == UUID % 0, hopper
        assert older["uuid"] == UUID % 1, older
        assert hopper["seconds"] >= 2, hopper
        wanted = dict(zip(NAMES, (97, 40, 35.5, 22.3, 11, 41, 100 << 20, 50.5 * (1 << 20),
                                  1000 << 20, 2000 << 20, 12884901888, 350, 45, 1755, 1755)),
                      memory_total=85899345920, power_limit=700)
        for name, value in wanted.items():
            assert hopper[name] == [value] * 2, (name, value, hopper)
        held = {"sw_power_cap": hopper["seconds"], "sw_thermal_slowdown": hopper["seconds"]}
        assert hopper["reasons"] == held, hopper
        # Not supported is absent, and idle is 0.
        assert all(name not in older for name in GPM + ("power", )), older
        assert older["utilization"] == [0] * 2 and older["memory_used"] == [0] * 2, older
        assert older["reasons"] == {"gpu_idle": older["seconds"]}, older
        assert list(processes) == [(program.pid, 0)], processes
        own = processes[program.pid, 0]
        assert own["process_memory"] == [123456789] * 2 and own["process_sm"] == [70] * 2, own
        assert own["comm"].startswith("python"), own
        # The run's filter leaves out who is not profiled.
        assert others[0]["processes"] == [1, 1] and others[0]["process_memory"][0] == 4096, others
        # Who asks for one program is shown the machine's GPUs, and that program.
        shown = test_pyprof.run("gpu", process.e2e_out, "--pid", str(program.pid))
        assert "NVIDIA H100" in shown and "%d python" % program.pid in shown, shown
        assert "memory 118 MiB, SMs 70.0 %" in shown, shown


def test_changes_have_their_mean_and_most():
    with steady() as program:
        library = Library("devices 1\n0.utilization 20 10\n0.reasons 0\n")
        process = library.start(program.pid, options=["--interval", "60s"])
        await_gauges(process)
        time.sleep(2.2)
        library.set("devices 1\n0.utilization 80 10\n0.reasons 0x8\n0.gpm.2 50\n")
        time.sleep(3.2)
        ended(process)
        (gpus, _, _), = all_told(process)
        mean, most = gpus[0]["utilization"]
        seconds = gpus[0]["seconds"]
        assert most == 80, gpus
        # So many of the readings had the later value, and as many the reason.
        means = {round((20 * (seconds - n) + 80 * n) / seconds, 6): n for n in range(1, seconds)}
        assert round(mean, 6) in means, (mean, means)
        assert gpus[0]["reasons"] == {"hw_slowdown": means[round(mean, 6)]}, gpus
        assert gpus[0]["memory_utilization"] == [10] * 2, gpus
        # The readings without it do not make it smaller.
        assert gpus[0]["sm_active"] == [50] * 2, gpus


def test_each_window_has_its_own():
    with steady() as program:
        library = Library("devices 1\n0.utilization 20 10\n")
        process = library.start(program.pid, options=["--interval", "2s"])
        await_gauges(process)
        count = len(files(process, "cuda"))
        harness.wait_for(lambda: len(files(process, "cuda")) > count, 30, "a window")
        library.set("devices 1\n0.utilization 80 10\n")
        count = len(files(process, "cuda"))
        harness.wait_for(lambda: len(files(process, "cuda")) > count + 1, 30, "two windows")
        ended(process)
        found = [gpus[0]["utilization"] for gpus, _, _ in all_told(process)]
        assert found[0] == [20] * 2 and found[-1] == [80] * 2, found
        for kind in ("cpu", "cuda", "gpu"):
            shown = test_pyprof.run("report", process.e2e_out, "--kind", kind)
            assert re.search(r"^ *0 +\d\d\.\d +80\.0 +- ", shown, re.M), shown
        shown = test_pyprof.run("report", process.e2e_out, "--kind", "gpu", "--sample-type",
                                "gauge_max", "--by", "label:gauge")
        assert re.search(r" 80[05] .*utilization$", shown, re.M), shown
        shown = test_pyprof.run("gpu", process.e2e_out)
        assert re.search(r"^ *0 +\d\d\.\d +80\.0 +- ", shown, re.M), shown


def windows(process):
    """Files of kind cuda whose window has those of cuda_calls, which are written later."""
    return [path.replace("cuda_calls.pb", "cuda.pb") for path in files(process, "cuda_calls")]


def devices_of(path):
    """device -> calls, in a window of kind cuda and in the one of cuda_calls"""
    found = []
    for kind in ("cuda", "cuda_calls"):
        found.append({})
        for sample in harness.load(path.replace("cuda.pb", kind + ".pb")).samples:
            device = sample.labels["device"]
            found[-1][device] = found[-1].get(device, 0) + sample.values[0]
    assert found[0] == found[1], found
    return found[0]


def test_who_is_older_is_on_the_gpu_that_nvml_tells():
    """Its calls do not tell which one it chose; the number is NVML's own."""
    on = "%d.process %d 1000000 5\n"
    with steady() as program:
        library = Library("devices 3\n" + on % (2, program.pid) + on % (0, 1))
        process = library.start(program.pid, events="cuda", options=["--interval", "2s"])
        await_gauges(process)
        count = len(windows(process))
        harness.wait_for(lambda: len(windows(process)) > count + 1, 30, "two windows")
        last = windows(process)[-1]
        found = devices_of(last)
        assert list(found) == ["nvml:2"] and found["nvml:2"] > 50, found
        shown = test_pyprof.run("gpu", last)
        assert "device nvml:2" in shown, shown
        # On a second one, any call may be for either.
        library.set("devices 3\n" + on % (2, program.pid) + on % (0, program.pid))
        count = len(windows(process))
        harness.wait_for(lambda: len(windows(process)) > count + 2, 30, "three windows")
        ended(process)
        assert list(devices_of(windows(process)[-2])) == ["unknown"], process.e2e_out


def test_who_says_which_gpu_it_chose_is_believed():
    test_probes.need_links()
    with harness.Target("cuda.py", "calls", "{}",
                        env={"FAKES": harness.need_fakes()}) as program:
        library = Library("devices 3\n2.process %d 1000000 5\n" % program.pid)
        process = library.start(program.pid, events="cuda", options=["--max-slowdown", "100%"])
        test_probes.await_sites(process, 10)
        await_gauges(process)
        open(program.path("go"), "w").close()  # it goes on with device 1
        program.wait("done", 90)
        ended(process)
        assert {device for path in files(process, "cuda") for device in devices_of(path)} == {"1"}


# ---------------------------------------------------------------- rights

def test_the_library_is_loaded_without_rights_and_by_the_child_alone():
    with steady() as program:
        library = Library()
        process = library.start(program.pid)
        child = reader_of(process)
        await_gauges(process)
        with open("/proc/%d/maps" % process.pid, encoding="ascii") as file:
            assert "libnvidia-ml" not in file.read()
        with open("/proc/%d/maps" % child, encoding="ascii") as file:
            assert "libnvidia-ml" in file.read()
        with open("/proc/%d/status" % child, encoding="ascii") as file:
            status = dict(line.rstrip().split(":", 1) for line in file if ":" in line)
        assert all(int(status[name], 16) == 0 for name in ("CapPrm", "CapEff", "CapInh", "CapAmb"))
        assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2", status
        if os.geteuid() == 0:
            assert set(status["Uid"].split()) == {"65534"}, status["Uid"]
        with open("/proc/%d/environ" % child, encoding="ascii") as file:
            assert file.read() == "LD_LIBRARY_PATH=%s\0PYPROFD_CHILD=1\0" % library.directory
        # It ends with the agent, however that ends.
        process.kill()
        process.wait()
        harness.wait_for(lambda: not os.path.exists("/proc/%d" % child), 30, "the child's end")


def test_nothing_is_started_before_a_program_has_cuda():
    with harness.light() as other:
        library = Library()
        process = library.start(other.pid)
        harness.sampling(process)
        time.sleep(2)
        assert "pyprofd: gauges" not in children(process), children(process)
        ended(process)
        assert not all_told(process)
    with steady() as program:
        process = library.start(program.pid, events="cpu")
        harness.sampling(process)
        time.sleep(2)
        assert "pyprofd: gauges" not in children(process), children(process)
        ended(process)


# ---------------------------------------------------------------- failures

def test_a_missing_library_is_told_and_costs_nothing():
    try:
        ctypes.CDLL("libnvidia-ml.so.1")
        raise harness.Skip("this machine has NVML")
    except OSError:
        pass
    with steady() as program:
        process = Library(source="").start(program.pid)
        await_words(process, "libnvidia-ml.so.1 was not found")
        time.sleep(2)
        assert "pyprofd: gauges" not in children(process), children(process)
        run = ended(process)
        assert run.err.count("was not found") == 1 and "gauges_lost" not in run.err, run.err
        assert not all_told(process) and files(process, "cuda")


HALF = """
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)8; return i; }
int nvmlDeviceGetTemperature(void *h, int s, unsigned *c) { *c = 33; return h ? s : 1; }
"""


def test_of_half_a_library_the_rest_is_absent():
    with steady() as program:
        process = Library(source=HALF).start(program.pid)
        await_gauges(process)
        time.sleep(1.5)
        ended(process)
        (gpus, _, _), = all_told(process)
        assert gpus[0]["temperature"] == [33] * 2 and gpus[0]["uuid"] == "", gpus
        assert not any(name in gpus[0] for name in NAMES if name != "temperature"), gpus
        assert not gpus[0]["reasons"] and "clock_event" not in gpus[0], gpus
        process = Library(source=HALF.replace("Count_v2", "Count_v9")).start(program.pid)
        await_words(process, "libnvidia-ml.so.1 lacks what every NVML has")
        ended(process)
        assert not all_told(process)


def test_a_driver_that_is_not_loaded_is_told_with_its_number():
    with steady() as program:
        process = Library("error.nvmlInit_v2 9\n").start(program.pid)
        await_words(process, "NVML does not begin")
        run = ended(process)
        assert "(error 9)" in run.err, run.err
        process = Library("devices 0\n").start(program.pid)
        await_words(process, "NVML knows no GPU")
        ended(process)


def test_a_killed_child_is_replaced():
    with steady() as program:
        process = Library().start(program.pid)
        first = reader_of(process)
        await_gauges(process)
        os.kill(first, signal.SIGKILL)
        assert reader_of(process, first) != first
        time.sleep(1.5)
        run = ended(process)
        assert "the child that loads NVML has ended" in run.err, run.err
        assert "1 gauges_lost" in run.err, run.err
        assert all_told(process), run.err


def test_a_hung_call_is_told_once_and_holds_up_nothing():
    with steady() as program:
        library = Library("devices 1\n0.utilization 20 10\n")
        process = library.start(program.pid)
        await_gauges(process)
        library.set("devices 1\n0.utilization 20 10\nhang.nvmlDeviceGetPowerUsage 1\n")
        await_words(process, "NVML does not answer")
        time.sleep(2)
        run = ended(process)
        assert run.err.count("NVML does not answer") == 1, run.err
        (gpus, _, _), = all_told(process)
        assert gpus[0]["utilization"] == [20] * 2, gpus


HOSTILE = """
#include <stdlib.h>
#include <unistd.h>
int nvmlInit_v2(void)
{
	static char bytes[512];
	for (;;)
		if (write(3, bytes, sizeof(bytes)) < 0)
			_exit(0);
	return 0;
}
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 0; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = 0; return i; }
"""


def test_a_library_that_floods_the_pipe_is_not_believed():
    with steady() as program:
        process = Library(source=HOSTILE).start(program.pid)
        await_words(process, "says what cannot be")
        first = reader_of(process)  # the next try
        run = ended(process)
        assert not os.path.exists("/proc/%d" % first)
        assert not all_told(process), run.err


def test_a_library_that_crashes_is_told():
    with steady() as program:
        crash = HALF.replace("nvmlInit_v2(void) { return 0; }",
                             "nvmlInit_v2(void) { return *(volatile int *)4; }")
        process = Library(source=crash).start(program.pid)
        await_words(process, "the child that loads NVML has ended")
        run = ended(process)
        assert run.rc == 0 and not all_told(process), run.err


# ---------------------------------------------------------------- metrics

def test_metrics_are_those_of_the_file():
    with steady() as program:
        library = Library(VALUES + "0.process %d 123456789 70\n" % program.pid)
        with test_serve.Server(events="cpu,cuda",
                               env={"LD_LIBRARY_PATH": library.directory}) as server:
            def found():
                return test_serve.metrics(server.get("/metrics")[1])
            harness.wait_for(lambda: "pyprofd_gpu_sm_active_ratio" in found(), 60, "gauges")
            values = found()
            first, second = ('gpu="%d",uuid="%s"' % (i, UUID % i) for i in range(2))
            for name, value in (("utilization_ratio", 0.97), ("sm_active_ratio", 0.355),
                                ("memory_used_bytes", 12884901888), ("power_watts", 350),
                                ("memory_total_bytes", 85899345920), ("power_limit_watts", 700),
                                ("temperature_celsius", 45), ("sm_clock_hertz", 1755e6),
                                ("pcie_transmit_bytes_per_second", 100 << 20),
                                ("nvlink_receive_bytes_per_second", 2000 << 20),
                                ("processes", 1)):
                assert values["pyprofd_gpu_" + name][first] == value, (name, values)
            assert second not in values["pyprofd_gpu_sm_active_ratio"], values
            assert second not in values["pyprofd_gpu_power_watts"], values
            assert values["pyprofd_gpu_utilization_ratio"][second] == 0, values
            assert values["pyprofd_gpus"][None] == 2, values
            named = first + ',name="NVIDIA H100 80GB HBM3"'
            assert values["pyprofd_gpu_info"][named] == 1, values["pyprofd_gpu_info"]
            held = values["pyprofd_gpu_clock_event_seconds_total"]
            assert held[first + ',reason="sw_power_cap"'] >= 1, held
            assert held[first + ',reason="hw_slowdown"'] == 0, held
            # Nobody learns from it who is on a GPU.
            of_gpus = re.findall(r"^pyprofd_gpu.*", server.get("/metrics")[1].decode(), re.M)
            labels = {name for line in of_gpus for name in re.findall(r'([a-z_]+)="', line)}
            assert labels == {"gpu", "uuid", "name", "reason"}, labels
            library.set(VALUES + "hang.nvmlDeviceGetTemperature 1\n")
            harness.wait_for(lambda: found()["pyprofd_gpus"][None] == 0, 60, "silence")
            values = found()
            assert values["pyprofd_gpu_gauges_failures_total"]['reason="silent"'] == 1, values
            assert "pyprofd_gpu_power_watts" not in values, values
