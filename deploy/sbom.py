#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""sbom.py VERSION PROGRAM... --build PACKAGE...   Prints an SPDX 2.3 document (JSON) of the built
programs: their checksums, the Debian packages whose libraries they load, and those that they were
built with, as dpkg knows them on this machine.

PACKAGE is A or A|B, as in tests/deps.mk: the first that is installed.  SOURCE_DATE_EPOCH sets the
time.
"""
import argparse
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import time

# Of these, code is in the programs themselves: headers with functions, and an archive.
COMPILED_IN = {"libiberty-dev", "uthash-dev", "libxxhash-dev"}
FIELDS = ["binary:Package", "Package", "Version", "Architecture", "db:Status-Status"]
NONE = "NOASSERTION"
OWN = "SPDXRef-Package-pyprofd"


def said(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                          env=dict(os.environ, LC_ALL="C")).stdout.decode()


def installed(names):
    """{name: fields} of those that are."""
    lines = said("dpkg-query", "-W", "-f=" + "\t".join("${%s}" % f for f in FIELDS) + "\n",
                 *names).splitlines()
    found = [dict(zip(FIELDS, line.split("\t"))) for line in lines]
    return {f["Package"]: f for f in found if f["db:Status-Status"] == "installed"}


def owners_of(paths):
    """{path: its package or None}, by one reading of dpkg's lists.  A library below /lib may be
    known by its name below /usr/lib, and the other way round."""
    names = {}
    for path in paths:
        real = os.path.realpath(path)
        names[path] = (path, real, path.replace("/usr/lib", "/lib", 1),
                       real.replace("/usr/lib", "/lib", 1), "/usr" + path)
    asked = sorted({name for alike in names.values() for name in alike})
    lines = said("dpkg-query", "-S", *asked).splitlines()
    owners = {path: owner.split(":")[0].split(",")[0]
              for owner, _, path in (line.partition(": ") for line in lines)}
    return {path: next((owners[name] for name in alike if name in owners), None)
            for path, alike in names.items()}


def libraries(program):
    """({soname: path} of what it asks for itself, the same of all that is loaded)"""
    asked = set(re.findall(r"\(NEEDED\).*\[(.*)\]", said("readelf", "-dW", program)))
    loaded = dict(re.findall(r"^\s*(\S+) => (/\S+)", said("ldd", program), re.M))
    missing = asked - set(loaded) - {x for x in asked if x.startswith("ld-")}
    if missing or not asked:
        sys.exit("sbom: %s: where are %s?" % (
            program, ", ".join(sorted(missing)) or "its libraries"))
    return {name: path for name, path in loaded.items() if name in asked}, loaded


def element(kind, name):
    return "SPDXRef-%s-%s" % (kind, re.sub(r"[^A-Za-z0-9.-]", "-", name))


def own_package(version):
    return {"SPDXID": OWN, "name": "pyprofd", "versionInfo": version, "downloadLocation": NONE,
            "filesAnalyzed": False, "licenseConcluded": NONE, "copyrightText": NONE,
            "primaryPackagePurpose": "APPLICATION",
            "licenseDeclared": "BSD-2-Clause AND (GPL-2.0-only OR BSD-2-Clause)"}


def debian_package(fields, distribution):
    purl = "pkg:deb/%s/%s@%s?arch=%s" % (distribution, fields["Package"].replace("+", "%2B"),
                                         fields["Version"].replace("+", "%2B").replace(":", "%3A"),
                                         fields["Architecture"])
    return {"SPDXID": element("Package-deb", fields["Package"]), "name": fields["Package"],
            "versionInfo": fields["Version"], "downloadLocation": NONE, "filesAnalyzed": False,
            "licenseConcluded": NONE, "licenseDeclared": NONE, "copyrightText": NONE,
            "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                              "referenceLocator": purl}]}


def file_of(program):
    with open(program, "rb") as file:
        content = file.read()
    return {"SPDXID": element("File", os.path.basename(program)),
            "fileName": "./" + os.path.basename(program), "fileTypes": ["BINARY"],
            "licenseConcluded": NONE, "licenseInfoInFiles": [NONE], "copyrightText": NONE,
            "checksums": [{"algorithm": name.upper(),
                           "checksumValue": hashlib.new(name, content).hexdigest()}
                          for name in ("sha1", "sha256")]}


def relation(subject, kind, other):
    return {"spdxElementId": subject, "relationshipType": kind, "relatedSpdxElement": other}


def distribution_of():
    try:
        return platform.freedesktop_os_release()["ID"]
    except (AttributeError, OSError, KeyError):
        return "debian"


def link_relations(program, packages):
    """Adds the packages of a program's libraries."""
    asked, loaded = libraries(program)
    packaged = owners_of(loaded.values())
    owners = {name: packaged[path] for name, path in loaded.items()}
    unknown = [name for name in loaded if not owners[name]]
    if unknown:
        sys.exit("sbom: no package has %s" % ", ".join(unknown))
    packages.update(installed(sorted(set(owners.values()))))
    direct = {owners[name] for name in asked}
    subject = element("File", os.path.basename(program))
    return [relation(subject, "DYNAMIC_LINK" if name in direct else "DEPENDS_ON",
                     element("Package-deb", name))
            for name in sorted(set(owners.values()))]


def build_relations(wanted, packages):
    """Adds the packages of the build."""
    there = installed([name for item in wanted for name in item.split("|")])
    relations = []
    for item in wanted:
        name = next((name for name in item.split("|") if name in there), None)
        if not name:
            sys.exit("sbom: %s is not installed" % item)
        packages[name] = there[name]
        kind = "BUILD_DEPENDENCY_OF" if name.endswith("-dev") else "BUILD_TOOL_OF"
        relations.append(relation(element("Package-deb", name), kind, OWN))
        if name in COMPILED_IN:
            relations.append(relation(OWN, "STATIC_LINK", element("Package-deb", name)))
    return relations


def document(version, programs, wanted):
    files, packages, relations = [file_of(p) for p in programs], {}, []
    for program in programs:
        relations.append(relation(OWN, "GENERATES", element("File", os.path.basename(program))))
        relations += link_relations(program, packages)
    relations += build_relations(wanted, packages)
    created = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or time.time()))
    sums = hashlib.sha256("".join(
        f["checksums"][1]["checksumValue"] for f in files).encode()).hexdigest()
    distribution = distribution_of()
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": "pyprofd-" + version,
            "documentNamespace": "urn:pyprofd:sbom:%s:%s" % (version, sums),
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", created),
                             "creators": ["Tool: pyprofd-sbom-" + version]},
            "packages": [own_package(version)] + [
                debian_package(packages[name], distribution) for name in sorted(packages)],
            "files": files,
            "relationships": [relation("SPDXRef-DOCUMENT", "DESCRIBES", OWN)] + relations}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("program", nargs="+")
    parser.add_argument("--build", nargs="+", default=[], metavar="PACKAGE")
    options = parser.parse_args()
    try:
        result = document(options.version, options.program, options.build)
    except FileNotFoundError as error:
        sys.exit("sbom: %s: %s" % (error.filename, error.strerror))
    json.dump(result, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
