#!/usr/bin/env python3
"""One wheel of several that were built from the same sources for different minor versions of torch.

    scripts/merge-wheels.py OUT WHEEL...        into the folder OUT, under the name of the first

What is compiled for a torch lies in a folder fcp/torch-2.15 of its own; all other files must be the
same, but for the launcher and the list of dependencies, which then allows each of these torches."""

import base64
import hashlib
import os
import re
import sys
import zipfile

NATIVE = re.compile(r"fcp/torch-(\d+)\.(\d+)/")
TORCH = re.compile(r"^Requires-Dist: torch\b.*$", re.MULTILINE)


def torch_dependency(minors):
    """From the oldest to the newest, without those between that are missing."""
    (major, first), (same, last) = min(minors), max(minors)
    if major != same:
        found = f"found torch {major}.{first} and {same}.{last}"
        raise SystemExit(f"merge-wheels: {found}, expected one major version")
    missing = [minor for minor in range(first, last) if (major, minor) not in minors]
    # Debian calls its 1.13.0 a pre-release.
    return ",".join(
        [f"torch>={major}.{first}.0a0", f"<{major}.{last + 1}.0a0"]
        + [f"!={major}.{minor}.*" for minor in missing]
    )


def read(paths):
    """The files of all wheels by name: how the archive describes each, and its bytes."""
    files, minors = {}, set()
    for path in paths:
        with zipfile.ZipFile(path) as wheel:
            own = {(int(m[1]), int(m[2])) for m in map(NATIVE.match, wheel.namelist()) if m}
            if not own or own & minors:
                found = ", ".join(f"{major}.{minor}" for major, minor in sorted(own)) or "no torch"
                raise SystemExit(f"merge-wheels: {path}: is for {found}, expected a torch of its own")
            minors |= own
            for info in wheel.infolist():
                data = wheel.read(info)
                known = files.setdefault(info.filename, (info, data))[1]
                may_differ = "/scripts/" in info.filename or ".dist-info/" in info.filename
                if known != data and not may_differ:
                    other = f"{info.filename} is not that of {paths[0]}"
                    raise SystemExit(f"merge-wheels: {path}: {other}")
    return files, minors


def write(path, files, record):
    rows = []
    with zipfile.ZipFile(path + ".new", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, (info, data) in sorted(files.items()):
            wheel.writestr(info, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
        text = "".join(rows) + f"{record.filename},,\n"
        wheel.writestr(record, text, zipfile.ZIP_DEFLATED)
    os.replace(path + ".new", path)


def main(out, *paths):
    files, minors = read(paths)
    (metadata,) = (name for name in files if name.endswith(".dist-info/METADATA"))
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    info, text = files[metadata]
    text, count = TORCH.subn("Requires-Dist: " + torch_dependency(minors), text.decode())
    if count != 1:
        raise SystemExit(f"merge-wheels: {paths[0]}: asks for torch {count} times, expected once")
    files[metadata] = info, text.encode()
    write(os.path.join(out, os.path.basename(paths[0])), files, files.pop(record)[0])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
