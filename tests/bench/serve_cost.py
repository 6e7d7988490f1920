# SPDX-License-Identifier: BSD-2-Clause
"""What pyprofd-serve costs with one sink, a server with Pyroscope's own API, and whether the agent
notices: two agents beside each other look at the same 100 programs, and one of them pushes."""
import os
import time

import harness
import measure
import pyroscope

PROGRAMS, CORES = 100, 0.8
SETTLE_S = 15  # what is read once: programs, the kernel's names
WANTED_PERCENT, WANTED_MIB = 0.5, 40


def start(options=()):
    store = harness.temporary()
    process = harness.start(store + "/", hz=99, options=options, env={"STATE_DIRECTORY": store})
    harness.sampling(process)
    return process


def serve_of(agent):
    for pid in harness.children(agent.pid):
        with open("/proc/%d/cmdline" % pid, "rb") as file:
            if b"pyprofd-serve\0" in file.read():
                return pid
    return None


def one_round(seconds, is_first):
    """is_first: the one that pushes is started before the other."""
    server = pyroscope.Server("-forget")
    sink = ["--set", "push.a.type=pyroscope", "--set", "push.a.url=" + server.url]
    agents = {is_pushing: start(sink if is_pushing else ()) for is_pushing in
              ((True, False) if is_first else (False, True))}
    serve = harness.wait_for(lambda: serve_of(agents[True]), 30, "pyprofd-serve")
    time.sleep(SETTLE_S)

    def cpu_s():
        return {"serve": measure.own_cpu_s(serve), "pushing": measure.own_cpu_s(agents[True].pid),
                "alone": measure.own_cpu_s(agents[False].pid)}

    before, begin = cpu_s(), time.monotonic()
    time.sleep(seconds)
    passed_s = time.monotonic() - begin
    result = {name + "_percent": 100 * (value - before[name]) / passed_s
              for name, value in cpu_s().items()}
    result.update(
        seconds=passed_s, serve_rss_mib=measure.status_kib(serve, "VmHWM") / 1024,
        serve_anonymous_mib=measure.status_kib(serve, "RssAnon") / 1024,
        pushing_rss_mib=measure.status_kib(agents[True].pid, "VmHWM") / 1024,
        alone_rss_mib=measure.status_kib(agents[False].pid, "VmHWM") / 1024)
    for agent in agents.values():
        harness.finish(agent, signal_number=2)
    counts = server.stop()
    result.update(pushes=counts["pushes"], series=counts["series"], bytes=counts["bytes"],
                  refused=counts["refused"])
    assert counts["pushes"] >= passed_s / 10, counts
    return result


def section(quick, say):
    with harness.Target("fleet.py", PROGRAMS, CORES, ready=False) as target:
        target.wait("ready", 180)
        rounds = [one_round(30 if quick else 180, number % 2 == 0)
                  for number in range(1 if quick else 2)]
    for one in rounds:
        say("serve    %d programs, one sink: pyprofd-serve %.3f %% of a core (wanted <= %.1f), "
            "%.1f MiB at most (%.1f anonymous; wanted <= %d); %d pushes, %d series"
            % (PROGRAMS, one["serve_percent"], WANTED_PERCENT, one["serve_rss_mib"],
               one["serve_anonymous_mib"], WANTED_MIB, one["pushes"], one["series"]))
        say("serve    the agent: %.2f %% of a core and %.1f MiB with it, %.2f %% and %.1f MiB "
            "without" % (one["pushing_percent"], one["pushing_rss_mib"], one["alone_percent"],
                         one["alone_rss_mib"]))
    return {"rounds": rounds}
