# SPDX-License-Identifier: BSD-2-Clause
"""Users run code from file systems that stop to answer: an overlayfs of the own above a FUSE of the
own, so that it asks with its user's rights whoever looks; the same as /tmp, with a perf map for
code without a file; a FUSE that everybody may enter (allow_other); and three of those that answer
everything but to who closes a file."""
import os
import signal
import stat
import time

import craft

ALONE = True  # other agents would wait for them, too
USERS = (65534, 65532, 65531, 65530, 65529, 65528)
FUSE = "/dev/fuse"
SHARED = "shared-%d"  # of that user, mounted by root
FLUSH = 25
AGAIN_S = 5        # until the next pyprofd samples


def prepare(rig):
    """Who may have a FUSE is the host's to say; here everybody may, as usual."""
    import harness  # not there for who attacks
    from test_dump import become
    harness.need(os.path.exists(FUSE), "no FUSE")
    path = os.path.join(rig.directory, "fuse")
    os.mknod(path, stat.S_IFCHR | 0o666, os.stat(FUSE).st_rdev)
    os.chmod(path, 0o666)
    data = craft.burner().write(os.path.join(rig.directory, "burner.so"))
    rig.servers = []
    for user in USERS[2:]:
        shared = os.path.join(rig.directory, SHARED % user)
        os.mkdir(shared)
        fd = craft.mount_folder(path, shared, user, b",allow_other")
        rig.servers.append(
            craft.serve_folder(fd, data, lambda: become(user),
                               () if user == USERS[2] else (FLUSH, )))
        os.close(fd)
        rig.at_end.append(lambda shared=shared: craft.libc.umount2(shared.encode(), 2))
    rig.at_end.insert(0, lambda: end_servers(rig))


def end_servers(rig):
    """They outlive who attacks: what hangs, hangs until then."""
    for attacker in rig.attackers:
        rig.servers += [int(pid) for pid in getattr(attacker, "said", []) if int(pid)]
    for pid in rig.servers:
        os.kill(pid, signal.SIGKILL)


def overlay(box):
    """An overlayfs above a FUSE, both of this user's.  Its path, and who serves it."""
    data = craft.burner().write(os.path.join(box.directory, "burner.so"))
    places = [os.path.join(box.directory, name) for name in ("lower", "other", "merged")]
    for place in places:
        os.mkdir(place)
    craft.become_root_of_nobody()
    fd = craft.mount_folder(os.path.join(os.path.dirname(box.directory), "fuse"), places[0])
    server = craft.serve_folder(fd, data)
    os.close(fd)
    options = "lowerdir=%s:%s" % tuple(places[:2])
    if craft.libc.mount(b"overlay", places[2].encode(), b"overlay", 0, options.encode()):
        craft.skip("no overlayfs for users")
    return places[2], server


def attack(box):
    craft.needs_x86()
    kind, server = USERS.index(os.getuid()), 0
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        path = os.path.join(os.path.dirname(box.directory), SHARED % os.getuid())
        if kind < 2:
            path, server = overlay(box)
        if kind == 1:
            craft.check(craft.libc.mount(path.encode(), b"/tmp", None, 0x1000, None), "bind")
            os.path.exists("/tmp/stop")
            at = craft.anonymous()
            craft.write_at(at, craft.BURN)
        else:
            at = craft.map_stopped(path, "stop" if kind < 3 else "nothing")
        os.write(write_end, b"%d" % server)
        os.close(write_end)
        craft.keep_calling(at)
    os.close(write_end)
    with os.fdopen(read_end) as file:
        said = file.read()
    if not said:
        craft.skip("no such mounts")
    box.ready(said)
    time.sleep(60)


def check(rig):
    """What it hung at does not keep the next one from beginning."""
    import harness
    began = time.monotonic()
    agent = harness.start(rig.store, options=["--live", rig.socket, "--interval", "2"])
    harness.sampling(agent)
    took_s = time.monotonic() - began
    assert harness.finish(agent, 30, signal.SIGINT).rc == 0
    print("the next one samples after %.1f s" % took_s)
    assert took_s < AGAIN_S, "the next pyprofd samples after %.1f s" % took_s
    assert "opens_late" in rig.run.err, "nobody was trapped: %s" % rig.run.err
