#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""list.py [--few] [FETCHED]   Prints LABEL<TAB>COMMAND for every CPython at hand; --few: for the
first of each minor version.

Looked for: ~/.pyenv/versions/* (of root and of SUDO_UID; PYENV_ROOT), /usr/bin/python[23].X, and
the trees that fetch.sh made in FETCHED (default: $INTERPRETERS, $BUILD/interpreters) as `chroot
TREE /usr/bin/python3.X`. One that does not start is told on stderr and left out.
"""
import glob
import os
import pwd
import re
import subprocess
import sys

CHECK = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"


def homes():
    found = [os.path.expanduser("~")]
    if os.environ.get("SUDO_UID", "").isdigit():
        try:
            found.append(pwd.getpwuid(int(os.environ["SUDO_UID"])).pw_dir)
        except KeyError:
            pass
    return found


def candidates(fetched):
    roots = [os.environ.get("PYENV_ROOT")] + [h + "/.pyenv" for h in homes()]
    seen = set()
    for root in filter(None, roots):
        for directory in sorted(glob.glob(root + "/versions/*")):
            match = re.match(r"(\d+)\.(\d+)\.\d+$", os.path.basename(directory))
            if not match or os.path.realpath(directory) in seen:
                continue
            seen.add(os.path.realpath(directory))
            # The versioned name: `python` may be a link that a tool changed.
            yield ("pyenv-" + os.path.basename(directory),
                   ["%s/bin/python%s.%s" % ((directory,) + match.groups())])
    for path in sorted(glob.glob("/usr/bin/python[23].[0-9]*")):
        match = re.match(r"/usr/bin/python([23]\.\d+)$", path)
        if match:
            yield "system-" + match.group(1), [path]
    for tree in sorted(glob.glob(os.path.join(fetched, "debian-[0-9]*"))):
        if os.path.exists(tree + "/.complete"):
            version = os.path.basename(tree)[len("debian-"):]
            yield os.path.basename(tree), ["chroot", tree, "/usr/bin/python" + version]


def version_of(command):
    """'3.12', or None when it does not run."""
    try:
        done = subprocess.run(command + ["-S", "-c", CHECK], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = done.stdout.decode("ascii", "replace")
    return text if done.returncode == 0 and re.match(r"\d+\.\d+$", text) else None


def at_hand(fetched):
    """[(label, command list, (major, minor))], ordered by version."""
    result = []
    for label, command in candidates(fetched):
        version = version_of(command)
        if version is None:
            sys.stderr.write("# %s: %s does not run\n" % (label, command[-1]))
            continue
        result.append((label, command, tuple(int(x) for x in version.split("."))))
    return sorted(result, key=lambda item: (item[2], item[0]))


def default_directory():
    top = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    build = os.path.join(top, os.environ.get("BUILD") or "build")
    return os.environ.get("INTERPRETERS") or os.path.join(build, "interpreters")


def main():
    few = "--few" in sys.argv
    words = [word for word in sys.argv[1:] if word != "--few"]
    found = at_hand(words[0] if words else default_directory())
    versions = set()
    for name, command, version in found:
        if not (few and version in versions):
            print("%s\t%s" % (name, " ".join(command)))
        versions.add(version)
    if few and len(found) > len(versions):
        sys.stderr.write(
            "# left to check-long: %d interpreters of versions that unit tests look at (one of "
            "each is)\n"
            % (len(found) - len(versions)))


if __name__ == "__main__":
    main()
