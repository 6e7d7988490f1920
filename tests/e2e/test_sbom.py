# SPDX-License-Identifier: BSD-2-Clause
"""`make sbom`: the document has the form of SPDX 2.3, and names what the programs load and what is
compiled into them."""
import hashlib
import json
import os
import re
import shutil
import subprocess

import harness

BUILD = os.path.dirname(harness.PYPROFD)
PROGRAMS = "pyprofd", "pyprof", "pyprofd-serve", "pyprof-fetch"
RELATIONS = {
    "DESCRIBES", "GENERATES", "DYNAMIC_LINK", "STATIC_LINK", "DEPENDS_ON", "BUILD_DEPENDENCY_OF",
    "BUILD_TOOL_OF"
}


def made():
    for tool in "dpkg-query", "readelf", "ldd":
        harness.need(shutil.which(tool), "no " + tool)
    # What is built stays as it is; another word for the same directory would build all anew.
    build = os.path.relpath(BUILD, harness.TOP)
    build = BUILD if build.startswith("..") else build
    kept = [word for name in PROGRAMS for word in ("-o", build + "/" + name)]
    subprocess.run(["make", "-s", "-C", harness.TOP, "BUILD=" + build, *kept, "sbom"],
                   stdout=subprocess.DEVNULL, check=True,
                   env=dict(os.environ, SOURCE_DATE_EPOCH="1700000000"))
    with open(BUILD + "/pyprofd.spdx.json", encoding="utf-8") as file:
        return json.load(file)


def expect_form(document):
    assert document["spdxVersion"] == "SPDX-2.3" and document["dataLicense"] == "CC0-1.0"
    assert document["SPDXID"] == "SPDXRef-DOCUMENT" and document["name"]
    assert re.match(r"[a-z]+:[^\s#]+$", document["documentNamespace"])
    info = document["creationInfo"]
    assert info["created"] == "2023-11-14T22:13:20Z", info
    assert all(re.match(r"(Tool|Person|Organization): \S", who) for who in info["creators"])
    elements = document["packages"] + document["files"]
    ids = [document["SPDXID"]] + [x["SPDXID"] for x in elements]
    assert len(ids) == len(set(ids)) and all(re.match(r"SPDXRef-[A-Za-z0-9.-]+$", x)
                                             for x in ids), ids
    for package in document["packages"]:
        assert package["name"] and package["versionInfo"] and package[
            "downloadLocation"] == "NOASSERTION", package
        assert package["filesAnalyzed"] is False
        for reference in package.get("externalRefs", ()):
            assert reference["referenceCategory"] == "PACKAGE-MANAGER" and reference[
                "referenceType"] == "purl"
            assert re.match(r"pkg:deb/[a-z]+/[a-z0-9.%A-F-]+@[A-Za-z0-9.%~-]+\?arch=[a-z0-9]+$",
                            reference["referenceLocator"]), reference
    for relation in document["relationships"]:
        assert relation["relationshipType"] in RELATIONS, relation
        assert relation["spdxElementId"] in ids and relation["relatedSpdxElement"] in ids, relation


def expect_checksums(document):
    files = {os.path.basename(x["fileName"]): x for x in document["files"]}
    assert set(files) == set(PROGRAMS)
    for name in PROGRAMS:
        with open(os.path.join(BUILD, name), "rb") as file:
            content = file.read()
        sums = {x["algorithm"]: x["checksumValue"] for x in files[name]["checksums"]}
        assert sums == {
            "SHA1": hashlib.sha1(content).hexdigest(),
            "SHA256": hashlib.sha256(content).hexdigest()
        }


def expect_contents(document):
    names = {x["SPDXID"]: x["name"] for x in document["packages"]}

    def related(kind, subject=None):
        return {names.get(x["relatedSpdxElement"]) for x in document["relationships"]
                if x["relationshipType"] == kind and subject in (None, x["spdxElementId"])}
    for program in PROGRAMS:
        needed = re.findall(
            r"\(NEEDED\).*\[(.*)\]",
            subprocess.check_output(["readelf", "-dW", BUILD + "/" + program]).decode())
        linked = related("DYNAMIC_LINK", "SPDXRef-File-" + program)
        assert len(linked) <= len(needed) and {"libc6", "zlib1g"} <= linked, (needed, linked)
    assert {"libbpf1", "liblzma5"} <= {
        x.replace("t64", "") for x in related("DYNAMIC_LINK", "SPDXRef-File-pyprofd")
    }
    assert {"libmicrohttpd12", "libcurl4"} <= {
        x.replace("t64", "") for x in related("DYNAMIC_LINK", "SPDXRef-File-pyprofd-serve")
    }
    assert {"libjansson4", "libcurl4"} <= {
        x.replace("t64", "") for x in related("DYNAMIC_LINK", "SPDXRef-File-pyprof-fetch")
    }
    assert {"libiberty-dev", "uthash-dev", "libxxhash-dev"} == related("STATIC_LINK")
    with open(os.path.join(harness.TOP, "tests", "deps.mk"), encoding="utf-8") as file:
        text = file.read().replace("\\\n", " ")
    wanted = re.search(r"^DEPS_BUILD := (.*)$", text, re.M).group(1).split()
    built_with = {
        names[x["spdxElementId"]] for x in document["relationships"]
        if x["relationshipType"].startswith("BUILD_")
    }
    assert len(built_with) == len(wanted) and all(built_with & set(x.split("|"))
                                                  for x in wanted), (wanted, built_with)


def test_the_document_says_what_was_built():
    document = made()
    expect_form(document)
    expect_checksums(document)
    expect_contents(document)
