# SPDX-License-Identifier: BSD-2-Clause
"""pyprof why: made profiles with known figures, and programs whose GPU is slow for one reason, on a
stand-in of libcuda (tests/fakes)."""
import json
import os
import re
import signal
import time

import harness
import test_probes
from test_gpu_views import GpuWriter, MS, ROOT, make_store, put_gpu, total_of
from test_memory_views import MemoryWriter, WINDOW_MS, put_window
from test_pyprof import START_MS, Writer, run

S = 1000 * MS  # ns
CPU = (("samples", "count"), ("cpu", "nanoseconds"))
OFFCPU = (("off_cpu", "nanoseconds"), ("events", "count"), ("effective", "count"))
GPU = (("gpu_time", "nanoseconds"), ("gauge_sum", "count"), ("gauge_readings", "count"),
       ("gauge_max", "count"))
ALL = {"sync_bound", "starved", "launch_bound", "copy_bound", "tiny_copies", "allocation_churn",
       "graph_candidate"}


class SampleWriter(MemoryWriter):
    """A window of kind cpu or offcpu, with labels."""
    put = GpuWriter.put


def judged(*words):
    """The processes of the JSON, their findings by name."""
    data = json.loads(run("why", "--json", *words))
    for process in data["processes"]:
        findings = {finding["finding"]: finding for finding in process["findings"]}
        assert set(findings) == ALL and len(process["findings"]) == len(ALL), process
        for finding in findings.values():
            assert finding["rests_on"] and finding["cannot_know"] and finding["next"], finding
            assert finding["evidence"] or finding["verdict"] == "not known", finding
            assert (finding["verdict"] == "not known") == ("missing" in finding), finding
        process["by_name"] = findings
    return data["processes"]


def found(process):
    return [finding["finding"] for finding in process["findings"] if
            finding["verdict"] == "found"]


def figure(finding, name):
    values = [figure["value"] for figure in finding["evidence"] if figure["name"] == name]
    assert len(values) == 1, finding
    return values[0]


# ---------------------------------------------------------------- made profiles

def put_calls(directory, window, launches=400, syncs=10, wait_ns=4 * S, comments=(), pid=41,
              device="0"):
    whose = {"pid": pid, "device": device}
    writer = GpuWriter([total_of("cuLaunchKernel", launches, kernel="add", **whose),
                        total_of("cuStreamSynchronize", syncs, host_ns=wait_ns,
                                 hist=((20, syncs),), **whose)], comments)
    writer.put(ROOT + "forward:12 [cuLaunchKernel]", (launches, 0, 0, 0), api="cuLaunchKernel",
               kernel="add", tid=pid, **whose)
    writer.put(ROOT + "finish:25 [cuStreamSynchronize]", (syncs - 1, wait_ns * 3 // 4,
                                                          wait_ns * 3 // 4, 0),
               api="cuStreamSynchronize", tid=pid, **whose)
    writer.put(ROOT + "item:20 [cuStreamSynchronize]", (1, wait_ns // 4, wait_ns // 4, 0),
               api="cuStreamSynchronize", tid=pid, **whose)
    # Another thread waits all the time: it does not launch.
    writer.put("worker:50 [cuEventSynchronize]", (1, 10 * S, 10 * S, 0), api="cuEventSynchronize",
               tid=99, **whose)
    put_gpu(directory, window, writer)


def put_samples(directory, window, gpu="drained", off=2):
    """The launching thread: 3 s on the CPU, and 7 s off it; of these `off` with the label."""
    writer = SampleWriter(CPU)
    for label, ns in ((gpu, 1 * S), ("queued" if gpu else "", 2 * S)):
        writer.put(ROOT + "load:60", (ns // 10**7, ns), **({"gpu": label} if label else {}))
    writer.put("worker:50", (1000, 10 * S), tid=99, gpu="drained")
    put_window(directory, window, "cpu", writer)
    writer = SampleWriter(OFFCPU)
    writer.put(ROOT + "next:70 [futex]", (off * S, 1, 1), wait="lock",
               **({"gpu": gpu} if gpu else {}))
    writer.put(ROOT + "finish:25 [cuStreamSynchronize]", ((7 - off) * S, 1, 1), wait="lock",
               **({"gpu": "wait"} if gpu else {}))
    put_window(directory, window, "offcpu", writer)


def make_directory(windows=3, samples=True, **words):
    directory = harness.temporary()
    for window in range(windows):
        put_calls(directory, window)
        if samples:
            put_samples(directory, window, **words)
    return directory


def test_a_finding_has_its_figures_and_lines():
    process, = judged(make_directory())
    assert (process["pid"], process["thread"], process["comm"]) == (41, 41, "python3"), process
    assert found(process) == ["sync_bound", "starved"], process
    sync = process["by_name"]["sync_bound"]
    # The other thread's waits are not the launching one's.
    assert sync["lost_ns"] == 12 * S and figure(sync, "sync_wait_share") == 0.4, sync
    assert figure(sync, "launches_per_sync") == 40 and figure(sync, "syncs") == 30, sync
    assert [(line["line"], line["share"]) for line in sync["lines"]] == [
        (25, 0.75), (20, 0.25)], sync
    starved = process["by_name"]["starved"]
    assert abs(figure(starved, "drained_share") - 0.3) < 1e-9, starved
    assert figure(starved, "labelled_share") == 1 and starved["lost_ns"] == 9 * S, starved
    meanwhile = {f["text"]: f["value"] for f in starved["evidence"] if f["name"] == "meanwhile"}
    assert set(meanwhile) == {"Python on the CPU", "lock"}, meanwhile
    assert abs(meanwhile["lock"] - 2 / 3) < 1e-9, meanwhile
    assert [(line["name"], line["line"]) for line in starved["lines"]] == [
        ("next", 70), ("load", 60)], starved


def test_samples_before_the_first_call_do_not_count():
    directory = harness.temporary()
    for window in range(5):
        put_samples(directory, window)
        if window in (2, 4):
            put_calls(directory, window)
    process, = judged(directory)
    starved = process["by_name"]["starved"]
    # But those between two calls do.
    assert process["seconds"] == 30 and starved["lost_ns"] == 9 * S, process
    assert abs(figure(starved, "drained_share") - 0.3) < 1e-9, starved


def test_text_has_evidence_lines_and_limits():
    text = run("why", make_directory())
    assert re.search(r"^  1\. sync-bound: up to 12\.0 s lost$", text, re.M), text
    assert re.search(r"^  2\. starved: up to 9\.00 s lost$", text, re.M), text
    flat = re.sub(r"\s+", " ", text)
    assert ("40.0 % of the launching thread's time in synchronisations (needs at least 20.0 %)"
            in flat), text
    assert "next w.py:70" in flat and "rests on" in flat and "cannot know" in flat, text
    assert "try Let what the thread did meanwhile run ahead" in flat, text
    assert "Looked at, and nothing stood out:" in text and "copies a second" in flat, text
    assert "All times are the host's" in text and "thread 41" in text, text
    assert max(map(len, text.splitlines())) <= 100, text


def test_without_labels_starved_cannot_be_judged():
    process, = judged(make_directory(gpu=""))
    starved = process["by_name"]["starved"]
    assert starved["verdict"] == "not known" and "label gpu" in starved["missing"], starved
    assert figure(starved, "labelled_share") == 0, starved
    directory = make_directory(samples=False)
    starved = judged(directory)[0]["by_name"]["starved"]
    assert starved["verdict"] == "not known" and "kind cpu" in starved["missing"], starved
    assert re.search(r"Cannot be judged:\n     starved ", run("why", directory)), directory


def test_quiet_process_says_what_was_looked_at():
    text = run("why", make_store())
    assert "No finding.  Looked at, and nothing stood out:" in text, text
    for name in ("sync-bound", "launch-bound", "copy-bound", "tiny copies", "allocation churn",
                 "graph candidate"):
        assert re.search(r"^     %s +\d" % name, text, re.M), (name, text)
    assert re.search(r"^     starved +no samples of kind cpu", text, re.M), text


def test_a_process_and_a_device_are_chosen():
    directory = harness.temporary()
    put_calls(directory, 0)
    put_calls(directory, 1, pid=42, wait_ns=8 * S)
    assert [p["pid"] for p in judged(directory)] == [42, 41]
    assert [p["pid"] for p in judged(directory, "--pid", 41)] == [41]
    assert [p["pid"] for p in judged(directory, "--since", "@%d" % (START_MS // 1000 + 15))] == [42]
    assert judged(directory, "--gpu", 1) == []
    assert "No samples" in run("why", directory, "--gpu", 1)
    assert len(judged(directory, "--gpu", 0)) == 2
    assert "... 1 more processes" in run("why", "--top", 1, directory)


def test_a_device_that_nvml_told_of_is_chosen_by_its_name():
    directory = harness.temporary()
    put_calls(directory, 0)
    put_calls(directory, 1, pid=42, device="nvml:0")
    assert [p["pid"] for p in judged(directory, "--gpu", "nvml:0")] == [42]
    assert [p["pid"] for p in judged(directory, "--gpu", 0)] == [41]


def test_scaled_launches_are_told_as_an_estimate():
    directory = harness.temporary()
    put_calls(directory, 0, comments=[
        "probe=cuda_launch hits=505102 ns_per_hit=811 on=0.300"])
    sync = judged(directory)[0]["by_name"]["sync_bound"]
    assert any("estimate" in text for text in sync["cannot_know"]), sync
    put_calls(directory, 0, comments=["probe=malloc hits=5 ns_per_hit=811 on=0.300"])
    sync = judged(directory)[0]["by_name"]["sync_bound"]
    assert not any("estimate" in text for text in sync["cannot_know"]), sync


def put_gauges(directory, window, *gpus):
    """Ten readings of each GPU: (means of gauges)"""
    writer = MemoryWriter(GPU)
    for device, means in enumerate(gpus):
        for gauge, mean in means.items():
            writer.put(gauge + ":1", (0, mean * 100, 10, mean * 10), None, None, gauge=gauge,
                       device="nvml:%d" % device, uuid="GPU-%d" % device, name="NVIDIA H100",
                       unit="0.1 %")
    put_window(directory, window, "gpu", writer)


def test_a_gpu_with_few_busy_multiprocessors_is_found():
    directory = harness.temporary()
    put_calls(directory, 0)
    put_gauges(directory, 0, {"utilization": 97, "sm_active": 20}, {"utilization": 97},
               {"utilization": 9, "sm_active": 9})
    gpus = json.loads(run("why", "--json", directory))["gpus"]
    assert [(gpu["device"], gpu["findings"][0]["verdict"]) for gpu in gpus] == [
        (0, "found"), (1, "not known"), (2, "not found")], gpus
    text = run("why", directory)
    assert "GPU 0, as NVML counts them\n\n  1. idle multiprocessors\n" in text, text
    assert "97.0 % of the time some kernel ran (needs at least 90.0 %)" in text, text


def put_allocations(directory, window, count):
    writer = GpuWriter([total_of("cuMemAlloc", count, size=count << 20, host_ns=count * MS,
                                 hist=((11, count),))])
    writer.put(ROOT + "grow:30 [cuMemAlloc_v2]", (count, count * MS, 0, count << 20),
               api="cuMemAlloc")
    writer.put(ROOT + "grow:31 [cuMemAllocAsync]", (1000, 0, 0, 1000), api="cuMemAllocAsync")
    put_gpu(directory, window, writer)


def test_allocations_of_the_first_minute_are_normal():
    directory = harness.temporary()
    for window in range(12):
        put_allocations(directory, window, 1000 if window < 6 else 100)
    alloc = judged(directory)[0]["by_name"]["allocation_churn"]
    assert alloc["verdict"] == "not found" and figure(alloc, "allocations_per_s") == 10, alloc
    put_allocations(directory, 11, 101)
    alloc = judged(directory)[0]["by_name"]["allocation_churn"]
    assert alloc["verdict"] == "found" and abs(alloc["lost_ns"] - 601 * MS) < MS, alloc
    assert [line["line"] for line in alloc["lines"]] == [30] and len(
        alloc["cannot_know"]) == 1, alloc
    # Of less than that minute it is told.
    alloc = judged(directory, "--until", "@%d" % (START_MS // 1000 + 25))[0]["by_name"][
        "allocation_churn"]
    assert alloc["verdict"] == "found" and "first minute" in alloc["cannot_know"][1], alloc


def test_launches_that_do_not_repeat_are_no_graph():
    directory = harness.temporary()
    for window, launches in enumerate((8000, 9000, 8500)):
        put_calls(directory, window, launches=launches)
    graph = judged(directory)[0]["by_name"]["graph_candidate"]
    assert graph["verdict"] == "found" and figure(graph, "spread") < 1.2, graph
    put_calls(directory, 3, launches=16000)
    graph = judged(directory)[0]["by_name"]["graph_candidate"]
    assert graph["verdict"] == "not found" and figure(graph, "spread") > 1.9, graph


def test_hostile_names_stay_text():
    directory = harness.temporary()
    writer = GpuWriter([total_of("cuStreamSynchronize", 5, comm="a\x1b[2Jb", host_ns=9 * S)])
    writer.put("'evil\x1b[2J:3 [cuStreamSynchronize]", (5, 9 * S, 9 * S, 0),
               api="cuStreamSynchronize", comm="a\x1b[2Jb")
    path = put_window(directory, 0, "cuda", writer)
    for words in ([], ["--json"]):
        assert "\x1b" not in run("why", *words, path), words
    assert found(judged(path)[0]) == ["sync_bound"]


def test_what_cannot_be_judged_is_told_in_one_line():
    directory = harness.temporary()
    writer = Writer("/app/w.py")
    writer.add("main:3", 5)
    path = os.path.join(directory, "p.pb.gz")
    with open(path, "wb") as file:
        file.write(writer.bytes())
    said = run("why", path, status=2)
    assert said.count("\n") == 1 and "pyprofd --events cpu,offcpu,cuda" in said, said
    store = make_store(1)
    for words in (["--focus", "x"], ["--label", "api=x"], ["--thread", "x"],
                  ["--gpu", 0, "--label", "api=x"]):
        assert "whole processes" in run("why", *words, store, status=2), words
    for device in ("x", "nvml:", "nvml:x", "0x1"):
        assert "not the number" in run("why", "--gpu", device, store, status=2), device
    assert "not cpu" in run("why", "--kind", "cpu", store, status=2)
    assert "no groups" in run("why", "--group-by", "process", store, status=2)


# ---------------------------------------------------------------- the stand-in of libcuda

SECONDS = 3


def recorded(mode, seconds=SECONDS, is_whole=True):
    """What is said of a program of gpu_whys.py, what the library counted, and its source.  Without
    is_whole its end and its beginning are not in the profile, nor is what it does before and
    after."""
    test_probes.need_links()
    with harness.Target("gpu_whys.py", mode, seconds if is_whole else 1000,
                        env={"FAKES": harness.need_fakes()}) as program:
        out, go = harness.temporary(), program.path("go")
        if not is_whole:
            open(go, "w").close()
        process = harness.start(out, program.pid, hz=199, options=[
            "--events", "cpu,offcpu,cuda", "--interval", "2s", "--max-slowdown", "100%"])
        test_probes.await_sites(process, 10)
        if is_whole:
            open(go, "w").close()
            program.wait("done", 60)
        else:
            time.sleep(seconds)
        done = harness.finish(process, signal_number=signal.SIGINT)
        assert done.rc == 0, done.err
        with open(program.path("gpu_whys.py"), encoding="ascii") as file:
            source = file.read().splitlines()
        truth = program.read("truth.json") if is_whole else None
    print(run("why", out))
    process, = judged(out)
    return process, truth, source, out


def lines_with(source, *texts):
    return {number for number, line in enumerate(source, 1) if any(t in line for t in texts)}


REASONS = {"sync_bound": ("sync_bound", "cuStreamSynchronize"),
           "launch_bound": ("launch_bound", "cuLaunchKernel"),
           "copy_bound": ("copy_bound", "cuMemcpyHtoD_v2"),
           "tiny_copies": ("tiny_copies", "cuMemcpyHtoDAsync_v2"),
           "churn": ("allocation_churn", "cuMemAlloc_v2"),
           "graph": ("graph_candidate", "cuLaunchKernel")}


def test_a_program_is_slow_for_its_reason(mode):
    name, api = REASONS[mode]
    process, truth, source, _ = recorded(mode, is_whole=mode != "launch_bound")
    assert set(found(process)) - {"starved"} == {name}, (found(process), process["by_name"][name])
    finding = process["by_name"][name]
    # of a free, too
    calls = lines_with(source, api, api.replace("Alloc", "Free"))
    assert finding["lines"] and finding["lines"][0]["line"] in calls, finding
    if truth:
        check_figures(mode, finding, process, truth["api"])


def check_figures(mode, finding, process, api):
    seconds = process["seconds"]
    if mode == "sync_bound":
        wait_ns = api["cuStreamSynchronize"]["wait_ns"]
        assert -0.001 < finding["lost_ns"] / wait_ns - 1 < 0.02, (finding, wait_ns)
        assert figure(finding, "syncs") == api["cuStreamSynchronize"]["calls"], finding
        # The first window's launches may be scaled.
        assert abs(figure(finding, "launches_per_sync") - 4) < 0.4, finding
    elif mode == "copy_bound":
        wait_ns = api["cuMemcpyHtoD_v2"]["wait_ns"]
        assert -0.001 < finding["lost_ns"] / wait_ns - 1 < 0.02, (finding, wait_ns)
    elif mode == "tiny_copies":
        calls = api["cuMemcpyHtoDAsync_v2"]["calls"]
        assert abs(figure(finding, "copies_per_s") * seconds - calls) < 1, (finding, calls)
        assert 4 <= figure(finding, "median_bytes") <= 36, finding
    elif mode == "churn":
        calls = api["cuMemAlloc_v2"]["calls"] + api["cuMemFree_v2"]["calls"]
        assert abs(figure(finding, "allocations_per_s") * seconds - calls) < 1, (finding, calls)
    else:
        assert abs(figure(finding, "launches_per_sync") - 800) < 40, finding


test_a_program_is_slow_for_its_reason.cases = lambda: [(mode, mode) for mode in REASONS]
test_a_program_is_slow_for_its_reason.alone = "one a CPU"


def test_a_well_behaved_program_has_no_finding():
    process, _, _, out = recorded("well_behaved")
    assert not found(process), found(process)
    assert "No finding." in run("why", out)


test_a_well_behaved_program_has_no_finding.alone = "one a CPU"


def test_a_program_with_a_graph_is_no_candidate():
    process, _, _, _ = recorded("captured")
    assert "graph_candidate" not in found(process), process["findings"]


test_a_program_with_a_graph_is_no_candidate.alone = "one a CPU"


def test_a_starved_program_names_what_it_did_meanwhile():
    process, truth, source, out = recorded("starved", 5)
    starved = process["by_name"]["starved"]
    assert starved["verdict"] == "found" and figure(starved, "labelled_share") > 0.8, starved
    # What the library knows of its own queues: its last interval has not ended, of its first one
    # nobody could know.
    ended = [end - begin for begin, end in truth["proven"] if end]
    lost_ns, known_ns = starved["lost_ns"], sum(ended)
    assert 0.9 * known_ns < lost_ns < 1.05 * known_ns + max(ended), (lost_ns, ended)
    meanwhile = {f["text"]: f["value"] for f in starved["evidence"] if f["name"] == "meanwhile"}
    # Where others have the CPUs it waits for one.
    assert meanwhile["sleep"] > 0.05, meanwhile
    assert meanwhile["Python on the CPU"] + meanwhile.get("run queue", 0) > 0.5, meanwhile
    inside = lines_with(source, "time.sleep(0.1)", "total += i", "range(500)", "time.thread_time()")
    assert starved["lines"][0]["line"] in inside, starved
    # The same from the samples themselves.
    drained = run("tree", out, "--kind", "cpu", "--label", "gpu=drained")
    assert "load_batch" in drained and "cuCtxSynchronize" not in drained, drained
    assert "gpu drained" in run("report", out, "--kind", "cpu", "--by", "label:gpu")


test_a_starved_program_names_what_it_did_meanwhile.alone = "one a CPU"
