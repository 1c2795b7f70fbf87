#!/usr/bin/env python3
"""The bill of materials of a release, as SPDX 2.3 in JSON: each file of it with its checksum, and the
packages that are linked with it or compiled into it.

    sbom.py VERSION FILE...          Debian packages, wheels, archives of sources, programs, libraries

What is linked is read from the files themselves: the libraries that each names, as the loader finds
them here, and the package of Debian or of Python that each of these belongs to. Of headers alone no
trace is left in a file; those of COMPILED_IN are told. SOURCE_DATE_EPOCH is the time that it says.
"""

import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# Packages of Debian whose code is headers alone, and the headers.
COMPILED_IN = {"nlohmann-json3-dev": "/usr/include/nlohmann/json.hpp",
               "libcli11-dev": "/usr/include/CLI/CLI.hpp",
               "pybind11-dev": "/usr/include/pybind11/pybind11.h"}
NO_ANSWER = "NOASSERTION"


def output_of(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, **environment}).stdout


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def unpacked(path, folder):
    """The programs and libraries in a file: itself, or what is in the package."""
    if path.suffix == ".deb":
        subprocess.run(["dpkg-deb", "--extract", path, folder], check=True)
    elif path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            wheel.extractall(folder)
    elif path.name.endswith((".tar.gz", ".tar.xz")):
        return []
    else:
        return [path] if is_elf(path) else []
    return [file for file in sorted(pathlib.Path(folder).rglob("*"))
            if file.is_file() and not file.is_symlink() and is_elf(file)]


def needed(path):
    """The libraries that a file names, and where the loader finds them; None: nowhere. For what is in
    a wheel that is first the torch that it was linked with (python/CMakeLists.txt)."""
    linked = [folder / "linked-with" for folder in path.parents if (folder / "linked-with").exists()]
    first = {"LD_LIBRARY_PATH": os.path.dirname(linked[0].read_text())} if linked else {}
    named = re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", str(path)))
    found = dict(re.findall(r"(\S+) => (/\S+)", output_of("ldd", str(path), **first)))
    return {name: found.get(name) for name in named if not name.startswith("ld-linux")}  # of libc6


def debian_package(path):
    """Of a file of the system: name, version and what it is made of; None where no package has it."""
    for name in (path, os.path.realpath(path)):
        for place in (name, name.removeprefix("/usr")):  # before and after folders were merged
            owner = output_of("dpkg-query", "--search", place).split(":")[0]
            if owner and "," not in owner:
                version = output_of("dpkg-query", "--show", "--showformat=${Version}", owner)
                return {"name": owner, "version": version, "license": debian_license(owner),
                        "purl": f"pkg:deb/debian/{owner}@{version.replace('+', '%2B')}"}
    return None


def debian_license(package):
    """What Debian's machine-readable copyright says of all files, where that is an SPDX name."""
    try:
        text = pathlib.Path(f"/usr/share/doc/{package}/copyright").read_text("utf-8", "replace")
    except OSError:
        return NO_ANSWER
    found = re.search(r"^Files:\s*\*\s*\n(?:.*\n)*?License:[ \t]*(\S+)[ \t]*$", text, re.MULTILINE)
    known = {"MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "Zlib", "PostgreSQL", "Expat",
             "BSD-3-clause", "BSD-2-clause"}
    name = found[1] if found else ""
    spdx = {"Expat": "MIT", "BSD-3-clause": "BSD-3-Clause", "BSD-2-clause": "BSD-2-Clause"}
    return spdx.get(name, name) if name in known else NO_ANSWER


def python_package(path):
    """Of a library in an installed package of Python."""
    found = re.match(r"(.*/(?:site|dist)-packages)/([^/]+)/", os.path.realpath(path))
    if found is None:
        return None
    for folder in pathlib.Path(found[1]).glob("*.dist-info"):
        record = folder / "RECORD"
        relative = os.path.relpath(os.path.realpath(path), found[1])
        if record.exists() and f"{relative}," in record.read_text(encoding="utf-8"):
            name, version = folder.name.removesuffix(".dist-info").split("-")[:2]
            return {"name": name, "version": version, "license": NO_ANSWER,
                    "purl": f"pkg:pypi/{name}@{version.replace('+', '%2B')}"}
    return None


def package_of(library, path):
    known = path and (python_package(path) or debian_package(path))
    return known or {"name": library, "version": "", "license": NO_ANSWER, "purl": ""}


def spdx_id(text):
    return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", text)


def spdx_package(package, **more):
    entry = {"SPDXID": spdx_id(f"{package['name']}-{package['version']}"), "name": package["name"],
             "downloadLocation": NO_ANSWER, "filesAnalyzed": False,
             "licenseConcluded": NO_ANSWER, "licenseDeclared": package["license"],
             "copyrightText": NO_ANSWER, **more}
    if package["version"]:
        entry["versionInfo"] = package["version"]
    if package["purl"]:
        entry["externalRefs"] = [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                                  "referenceLocator": package["purl"]}]
    return entry


def materials(path):
    """The packages that one file of the release is linked with, and those compiled into it."""
    with tempfile.TemporaryDirectory() as folder:
        files = unpacked(path, folder)
        own = {file.name for file in files}
        linked = {}
        for file in files:
            for library, place in needed(file).items():
                outside = place is None or not os.path.realpath(place).startswith(folder)
                if library not in own and outside and not re.match("libfcp[.]", library):
                    package = package_of(library, place)
                    linked[package["purl"] or package["name"]] = package
    headers = [name for name, header in COMPILED_IN.items() if files and os.path.exists(header)]
    if not any("_fcp" in name for name in own):
        headers = [name for name in headers if name != "pybind11-dev"]
    return list(linked.values()), [debian_package(COMPILED_IN[name]) for name in headers]


def bill(version, paths):
    time = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")),
                                           datetime.timezone.utc)
    sums = [sha256(path) for path in paths]
    whole = hashlib.sha256("".join(sums).encode()).hexdigest()
    packages, relations = {}, []
    for path, digest in zip(paths, sums):
        own = {"name": path.name, "version": version, "license": "Apache-2.0", "purl": ""}
        entry = spdx_package(own, packageFileName=path.name, supplier="Organization: the fcp authors",
                             checksums=[{"algorithm": "SHA256", "checksumValue": digest}])
        packages[entry["SPDXID"]] = entry
        relations.append(("SPDXRef-DOCUMENT", "DESCRIBES", entry["SPDXID"]))
        linked, compiled_in = materials(path)
        for kind, found in (("DYNAMIC_LINK", linked), ("STATIC_LINK", compiled_in)):
            for package in filter(None, found):
                other = spdx_package(package)
                packages[other["SPDXID"]] = other
                relations.append((entry["SPDXID"], kind, other["SPDXID"]))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
            "name": f"fcp-{version}", "documentNamespace": f"https://spdx.org/spdxdocs/fcp-{whole}",
            "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ"),
                             "creators": ["Tool: scripts/sbom.py"]},
            "packages": list(packages.values()),
            "relationships": [{"spdxElementId": one, "relationshipType": kind,
                               "relatedSpdxElement": other} for one, kind, other in relations]}


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: sbom.py VERSION FILE...")
    print(json.dumps(bill(sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]), indent=1))
