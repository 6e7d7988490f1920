# SPDX-License-Identifier: BSD-2-Clause
"""What `make install` lays out, and the shells' completion: names come from the programs, and are
complete."""
import os
import re
import shutil
import subprocess

import harness

BUILD = os.path.dirname(harness.PYPROFD)
COMPLETION = os.path.join(harness.TOP, "deploy", "completion")
FILES = {
    "bin/pyprofd", "bin/pyprof", "bin/pyprofd-serve", "bin/pyprof-fetch",
    "lib/systemd/system/pyprofd.service", "lib/systemd/system/pyprofd-serve.service",
    "share/man/man1/pyprofd-serve.1", "lib/sysusers.d/pyprofd.conf",
    "share/man/man1/pyprofd.1", "share/man/man1/pyprof.1",
    "share/bash-completion/completions/pyprof", "share/zsh/site-functions/_pyprof",
    "share/doc/pyprofd/LICENSE", "share/doc/pyprofd/GPL-2.0-only.txt",
    "share/doc/pyprofd/README.md", "share/doc/pyprofd/CHANGELOG.md",
    "share/doc/pyprofd/examples/pyprofd.json", "share/doc/pyprofd/examples/pyprofd.rules.yml",
    "share/doc/pyprofd/examples/pyprofd-gpu.conf"
} | {
    "share/doc/pyprofd/examples/" + name
    for name in os.listdir(os.path.join(harness.TOP, "deploy", "examples"))
}


CONFIGURATION = "etc/pyprofd/pyprofd.conf"


def make(target, root, prefix):
    # What is built stays as it is: -o says of both programs that they are not older than anything.
    done = subprocess.run([
        "make", "-s", "-C", harness.TOP, "BUILD=" + BUILD, "-o", BUILD + "/pyprofd", "-o",
        BUILD + "/pyprof", "-o", BUILD + "/pyprofd-serve", "-o", BUILD + "/pyprof-fetch",
        "DESTDIR=" + root, "prefix=" + prefix, target
    ], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, check=False)
    assert done.returncode == 0, done.stdout


def installed(root):
    return {
        os.path.relpath(os.path.join(base, name), root) for base, _, names in os.walk(root)
        for name in names
    }


def test_install_and_uninstall():
    root, prefix = harness.temporary(), "/opt/py"
    make("install", root, prefix)
    assert installed(root) == {prefix[1:] + "/" + name for name in FILES} | {CONFIGURATION}, \
        installed(root)
    for name in "pyprofd", "pyprof", "pyprofd-serve", "pyprof-fetch":
        path = os.path.join(root + prefix, "bin", name)
        said = subprocess.check_output([path, "--version"]).decode()
        assert re.match(r"%s \d+\.\d+" % name, said), said
        assert os.stat(path).st_mode & 0o7777 == 0o755
    with open(root + prefix + "/lib/systemd/system/pyprofd.service", encoding="utf-8") as file:
        unit = file.read()
    assert re.search(r"^ExecStart=/opt/py/bin/pyprofd\b", unit,
                     re.M) and "/usr/local" not in unit, unit
    make("uninstall", root, prefix)
    assert not installed(root), installed(root)


def test_install_leaves_a_configuration_that_was_changed():
    root, prefix = harness.temporary(), "/opt/py"
    path = os.path.join(root, CONFIGURATION)
    make("install", root, prefix)
    with open(path, "a", encoding="utf-8") as file:
        file.write("[capture]\nhz = 49\n")
    make("install", root, prefix)
    make("uninstall", root, prefix)
    assert installed(root) == {CONFIGURATION}, installed(root)
    with open(path, encoding="utf-8") as file:
        assert file.read().endswith("hz = 49\n")


def pyprof(*words):
    return subprocess.check_output([BUILD + "/pyprof", *words]).decode()


def verbs():
    return re.findall(r"^  ([a-z]+) ", pyprof("--help"), re.M)


def bash(*words):
    """What bash offers for the last one of these words after `pyprof`."""
    harness.need(shutil.which("bash"), "no bash")
    script = (
        '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); compopt() { :; }; _pyprof; '
        'printf "%s\\n" "${COMPREPLY[@]}"')
    said = subprocess.check_output(
        ["bash", "-c", script, "bash", COMPLETION + "/pyprof.bash", BUILD + "/pyprof", *words])
    return said.decode().split()


def test_bash_offers_the_verbs():
    assert len(verbs()) >= 10 and set(bash("")) == set(verbs()) | {"--help", "--version"}, bash("")
    assert bash("fl") == ["flame"]


def test_bash_offers_every_option_of_a_verb():
    for verb in verbs():
        wanted = set(
            re.findall(r"(?<!\S)--[a-z][a-z-]*",
                       pyprof(verb, "--help").replace("=", " ").replace("[", " ")))
        assert len(wanted) > 2 and wanted <= set(bash(verb, "--")), (
            verb, wanted - set(bash(verb, "--")))


def test_bash_offers_values_that_the_program_takes():
    """Each value is accepted by the option: a profile that is not there is the only complaint."""
    for verb, option in ("report",
                         "--by"), ("report",
                                   "--sort"), ("diff", "--by"), ("diff", "--sort"), (
                                       "gpu", "--view"):
        values = bash(verb, option, "")
        assert values and set(values) == set(bash(verb, option, "=", "")), (verb, option, values)
        for value in values:
            files = ["/no/profile"] * (2 if verb == "diff" else 1)
            done = subprocess.run([BUILD + "/pyprof", verb, option, value, *files],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                  universal_newlines=True, check=False)
            assert done.returncode and "/no/profile" in done.stderr and option not in done.stderr, (
                verb, value, done.stderr)
        done = subprocess.run([BUILD + "/pyprof", verb, option, "nonsense", "/no/profile"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              universal_newlines=True, check=False)
        assert done.returncode and "nonsense" in done.stderr, (verb, option, done.stderr)


def test_zsh_has_the_values_of_bash():
    """Both files are written by hand: the same values for the same option."""
    with open(COMPLETION + "/pyprof.bash", encoding="utf-8") as file:
        ours = dict(re.findall(r"^\t(--[a-z-]+)(?: \| -\w)?\) echo '(.*)' ;;", file.read(), re.M))
    with open(COMPLETION + "/_pyprof", encoding="utf-8") as file:
        theirs = dict(
            re.findall(r"^\t(--[a-z-]+)(?: \| -\w)?\) compadd (?:-S \S+ )?(.*); return ;;",
                       file.read(), re.M))
    assert len(theirs) >= 5, theirs
    for option, values in theirs.items():
        assert ours.get(option) == values, (option, ours.get(option), values)


def test_zsh_parses():
    harness.need(shutil.which("zsh"), "no zsh")
    subprocess.run(["zsh", "-n", COMPLETION + "/_pyprof"], check=True)
