# SPDX-License-Identifier: BSD-2-Clause
"""Who a process is: app, service_name, unit, user, pod, container, Slurm job and ranks."""
import contextlib
import glob
import gzip
import os
import subprocess
import time
import uuid

import harness

PYPROF = os.path.join(os.path.dirname(harness.PYPROFD), "pyprof")
CANARY = "canary-4f1d7c"
KEYS = ("service_name", "app", "unit", "user", "namespace", "pod", "container", "slurm_job", "rank",
        "local_rank", "world_size")


def working(out, pid):
    return [s for s in harness.samples(out, pid)
            if harness.holds(s, "work") or harness.holds(s, "as_nobody")]


def labels_of(out, pid):
    """What all samples of a process say while it works (before its exec it was another program);
    "mixed" where they differ."""
    found = {}
    for sample in working(out, pid):
        for key in KEYS:
            value = sample.labels.get(key, "")
            found[key] = value if found.get(key, value) == value else "mixed"
    assert found, "no sample of %d" % pid
    return {key: value for key, value in found.items() if value}


def target(how="plain", **options):
    return harness.Target("labelled.py", how, "--token=" + CANARY, **options)


def workers(running):
    return running.read("workers.json")


def all_bytes(directory):
    for path in glob.glob(directory + "/**/*", recursive=True):
        if os.path.isfile(path):
            with open(path, "rb") as file:
                data = file.read()
            yield path, gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def test_environment_and_script():
    env = {"OTEL_SERVICE_NAME": "shop", "DD_SERVICE": "dog", "RANK": "3", "LOCAL_RANK": "1",
           "WORLD_SIZE": "16", "SLURM_JOB_ID": "4711", "SLURM_PROCID": "9"}
    with target(env=env) as shop, target(env={"DD_SERVICE": "dog", "RANK": "x"}) as dog, \
            target() as plain:
        run = harness.profile([shop.pid, dog.pid, plain.pid], duration=1)
        assert labels_of(run.out, shop.pid) == {
            "service_name": "shop", "app": "labelled.py", "user": "root", "slurm_job": "4711",
            "rank": "3", "local_rank": "1", "world_size": "16"}, labels_of(run.out, shop.pid)
        assert labels_of(run.out, dog.pid) == {
            "service_name": "dog", "app": "labelled.py", "user": "root"}
        assert labels_of(run.out, plain.pid) == {
            "service_name": "labelled.py", "app": "labelled.py", "user": "root"}


def test_secrets_of_command_line_and_environment_leave_in_no_byte():
    store = os.path.join(harness.temporary(), "store")
    os.mkdir(store)
    env = {"AWS_SECRET_ACCESS_KEY": CANARY, "RANK": CANARY, "SLURM_JOB_ID": CANARY,
           "SERVICE": CANARY, "OTEL_RESOURCE_ATTRIBUTES": "service.name=" + CANARY}
    with target(env=env) as one:
        run = harness.profile(None, out=store, options=[
            "--events", "cpu,offcpu,gil", "--timeline", os.path.join(store, "trace.json.gz")])
        files = list(all_bytes(store))
        assert any(b"labelled.py" in data for _, data in files), [path for path, _ in files]
        for path, data in files:
            assert CANARY.encode() not in data, path
        assert CANARY not in run.err
        assert one.process.poll() is None


def test_children_are_who_their_parents_are():
    env = {"OTEL_SERVICE_NAME": "shop"}
    with target("fork", env=env) as forks, target("spawn", env={"RANK": "1"}) as spawns:
        run = harness.profile([forks.pid, spawns.pid], duration=1)
        found = labels_of(run.out, workers(forks)[0])
        assert found["app"] == "labelled.py" and found["service_name"] == "shop", found
        found = labels_of(run.out, workers(spawns)[0])
        assert found["app"] == "labelled.py" and found["rank"] == "1", found


def test_titles_do_not_hide_what_was_there_before():
    """Those that come later are all that there is for a pyprofd that starts later."""
    store = os.path.join(harness.temporary(), "store")
    os.mkdir(store)
    # Of this test's own programs, which begin later.
    process = harness.start(store, os.getpid(), options=["--interval", "1"])
    harness.sampling(process)
    with target("titled", env={"DD_SERVICE": "shop"}) as one:
        harness.wait_for(lambda: any(working(path, one.pid) for path in
                                     glob.glob(store + "/**/*cpu*.gz", recursive=True)),
                         what="a window with a sample")
        open(one.path("title"), "w").close()
        one.wait("titled.json")
        with open("/proc/%d/cmdline" % one.pid, "rb") as file:
            assert file.read().startswith(b"gunicorn: worker [somebody else]")
        late = harness.profile(one.pid, duration=1)
        harness.finish(process, signal_number=2)
        for path in glob.glob(store + "/**/*cpu*.gz", recursive=True):
            if working(path, one.pid):
                found = labels_of(path, one.pid)
                assert found["service_name"] == "shop" and found["app"] == "labelled.py", found
        assert labels_of(late.out, one.pid)["service_name"] == "somebody else"


def test_exec_is_another_program():
    with target("exec", env={"DD_SERVICE": ""}) as one:
        process = harness.start(os.path.join(harness.temporary(), "out.pb.gz"), one.pid)
        harness.sampling(process, settle_s=1)
        os.unlink(one.path("ready"))
        open(one.path("exec"), "w").close()
        one.wait("ready")
        end = harness.cpu_of(one.pid) + 0.5
        harness.wait_for(lambda: harness.cpu_of(one.pid) >= end, what="work of the new program")
        run = harness.finish(process, signal_number=2)
        apps = {s.labels.get("app") for s in harness.samples(run.out, one.pid)}
        assert {"labelled.py", "labelled"} <= apps, apps


# ---------------------------------------------------------------- cgroups


def mounts():
    """Where the hierarchies are that paths of processes come from: v2, and v1's for systemd."""
    with open("/proc/self/mounts", encoding="utf-8", errors="replace") as file:
        for words in (line.split() for line in file):
            if words[2] == "cgroup2" or (words[2] == "cgroup" and "name=systemd" in words[3]):
                yield words[2], words[1]


@contextlib.contextmanager
def cgroup(mount, path, pid):
    """Puts the process into a cgroup that is made for it."""
    parts = path.strip("/").split("/")
    made = []
    try:
        for count in range(len(parts)):
            directory = os.path.join(mount, *parts[:count + 1])
            if not os.path.isdir(directory):
                try:
                    os.mkdir(directory)
                except OSError as error:
                    raise harness.Skip("no cgroup can be made: %s" % error)
                made.append(directory)
        with open(os.path.join(directory, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(pid))
        yield
    finally:
        with open(os.path.join(mount, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write(str(pid))
        for directory in reversed(made):
            harness.wait_for(lambda d=directory: removed(d), what="end of " + directory)


def removed(directory):
    try:
        os.rmdir(directory)
    except OSError:
        pass
    return not os.path.exists(directory)


@contextlib.contextmanager
def log(directory, name):
    """An entry such as the kubelet makes."""
    made = []
    try:
        for path in (directory, os.path.join(directory, name)):
            if not os.path.isdir(path):
                os.mkdir(path)
                made.append(path)
        yield
    finally:
        for path in reversed(made):
            removed(path)


def test_user_and_unit_are_followed():
    """Who drops root is root in the samples before that alone; who is moved is in its new unit from
    the next window on."""
    kind, mount = list(mounts())[-1]
    with open("/etc/passwd", encoding="utf-8", errors="replace") as file:
        names = {line.split(":")[2]: line.split(":")[0] for line in file if line.count(":") > 5}
    store = os.path.join(harness.temporary(), "store")
    os.mkdir(store)
    with target("drops") as one:
        process = harness.start(store, one.pid, options=["--interval", "1"])
        harness.sampling(process, settle_s=1.4)
        with cgroup(mount, "/e2e%d.slice/train-e2e.service" % os.getpid(), one.pid):
            time.sleep(0.5)
            open(one.path("drop"), "w").close()
            time.sleep(1.5)
            harness.finish(process, signal_number=2)
    files = sorted(glob.glob(store + "/**/*-cpu.pb.gz", recursive=True))
    seen = [sample for path in files for sample in harness.samples(path, one.pid)
            if harness.holds(sample, "go_on")]
    users = {(harness.holds(s, "as_nobody"), s.labels.get("user")) for s in seen}
    assert users == {(False, "root"), (True, names.get("65534", "65534"))}, users
    units = [labels_of(path, one.pid).get("unit") for path in files]
    assert units[-1] == "train-e2e.service" and units[0] != units[-1], (kind, units)


def test_a_users_cgroup_is_no_container():
    kind, mount = list(mounts())[-1]
    scope = "docker-%s.scope" % ("0123456789abcdef" * 4)
    path = "/user.slice/user-%d.slice/user@7.service/%s" % (os.getpid(), scope)
    with target() as one, cgroup(mount, path, one.pid):
        found = labels_of(harness.profile(one.pid, duration=1).out, one.pid)
        assert "container_id" not in found, (kind, found)
        assert found.get("unit") == "user@7.service/" + scope, (kind, found)


def test_pod():
    """By the cgroupfs driver and by systemd's, in each hierarchy."""
    for kind, mount in mounts():
        uid, container = str(uuid.uuid4()), uuid.uuid4().hex * 2
        paths = ["/kubepods-e2e%d/pod%s/%s" % (os.getpid(), uid, container),
                 "/kubepods-pod%s.slice/cri-containerd-%s.scope" % (uid.replace("-", "_"),
                                                                    container)]
        for path in paths:
            with target() as one, cgroup(mount, path, one.pid):
                with log("/var/log/containers", "web-7d9_shop_nginx-%s.log" % container):
                    found = labels_of(harness.profile(one.pid, duration=1).out, one.pid)
                    assert (found.get("pod"), found.get("namespace"), found.get("container"),
                            found.get("unit")) == ("web-7d9", "shop", "nginx", None), (kind, found)
                    assert found["service_name"] == "labelled.py"
                if path != paths[0]:
                    continue
                with log("/var/log/pods", "shop_web-7d9_" + uid):
                    found = labels_of(harness.profile(one.pid, duration=1).out, one.pid)
                    assert (found.get("pod"), found.get("namespace"), found.get("container")) == \
                        ("web-7d9", "shop", None), (kind, found)


# ---------------------------------------------------------------- the reader


def ask(*words, status=0):
    run = subprocess.run([PYPROF] + [str(w) for w in words], stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, universal_newlines=True, timeout=60)
    assert run.returncode == status, (words, run.stderr)
    return run.stdout if not status else run.stderr


def test_reader_groups_and_chooses_by_labels():
    with target(env={"RANK": "0", "DD_SERVICE": "shop"}) as one, \
            target(env={"RANK": "1", "DD_SERVICE": "shop"}) as two, harness.light() as other:
        out = harness.profile([one.pid, two.pid, other.pid], duration=1).out
    rows = ask("report", out, "--by", "service_name,rank")
    for row in ("service_name shop / rank 0", "service_name shop / rank 1",
                "service_name burn.py / rank none"):
        assert row in rows, rows
    rows = ask("report", out, "--by", "process", "--label", "service_name=^shop$", "--label",
               "rank=1")
    assert "pid %d " % two.pid in rows, rows
    assert "pid %d " % one.pid not in rows and "pid %d " % other.pid not in rows, rows
    rows = ask("report", out, "--by", "app", "--label", "rank=^$")
    assert "app burn.py" in rows and "labelled.py" not in rows, rows
    assert ask("tree", out, "--group-by", "app").count("app ") == 2
    assert "app burn.py" in ask("report", out, "--group-by", "app")
    assert "'functoin' is no label" in ask("report", out, "--by", "functoin", status=2)
    assert "not KEY=REGEX" in ask("report", out, "--label", "app", status=2)
