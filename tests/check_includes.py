#!/usr/bin/env python3
"""Fails when an include points upwards: a room of fcp/ may use only the rooms below it."""

import pathlib
import re
import sys

# Each room with the rooms it may include besides itself and base. The lists are closed: what a
# room may include through another stands here too.
BELOW = {
    "base": [],
    "conformal": [],
    "evaluation": ["conformal"],
    "monitoring": ["conformal", "evaluation"],
    "network": [],
    "bounds": ["network"],
    "search": ["network"],
    "scores": ["conformal", "bounds", "search", "network"],
    "calibration": ["scores", "conformal", "bounds", "search", "network", "training"],
    "export": ["calibration", "scores", "conformal", "bounds", "search", "network"],
    "data": [],
    "images": ["data"],
    "training": ["network", "data", "images"],
    "distributed": ["conformal"],
    "experiments": ["calibration", "scores", "conformal", "bounds", "search", "network", "data",
                    "training", "distributed", "evaluation", "report", "images", "export",
                    "pipeline"],
    "pipeline": ["calibration", "scores", "conformal", "bounds", "search", "network", "data",
                 "images", "training", "distributed", "evaluation", "monitoring", "export"],
    "facade": ["pipeline", "calibration", "scores", "conformal", "bounds", "search", "network",
               "data", "images", "training", "distributed", "evaluation", "monitoring", "export"],
    "serving": ["pipeline", "calibration", "conformal", "network", "data", "evaluation", "monitoring",
                "report"],
    "report": ["evaluation", "conformal", "data", "images", "monitoring", "pipeline"],
}
# The public headers that stand in no room: what they may include.
PUBLIC = {"fcp.h": ["conformal"], "tensors.h": ["conformal"]}
NO_TORCH = {"fcp.h", "base", "conformal", "evaluation", "monitoring", "data", "images", "distributed",
            "report"}
INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"fcp/([^/"]+)/[^"]*"|<((?:torch|ATen|c10)/[^>]*)>)')


def complaints(root):
    for path in sorted((root / "fcp").rglob("*")):
        if path.suffix not in {".h", ".cc"}:
            continue
        room = path.relative_to(root / "fcp").parts[0]
        if room not in BELOW and room not in PUBLIC:
            yield f"{path.relative_to(root)}: room '{room}' is not in the list of rooms"
            continue
        allowed = {room, "base", *BELOW.get(room, PUBLIC.get(room, []))}
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            match = INCLUDE.match(line)
            if not match:
                continue
            where = f"{path.relative_to(root)}:{number}"
            if match[1] and match[1] not in allowed:
                yield f"{where}: room '{room}' must not include room '{match[1]}'"
            if match[2] and room in NO_TORCH:
                yield f"{where}: room '{room}' must not include libtorch"


def self_test():
    """The check must be able to fail."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for room, text in [
            ("conformal", '#include "fcp/network/op.h"\n#include <torch/types.h>\n'),
            ("network", '#include "fcp/base/error.h"\n#include <torch/types.h>\n'),
            ("utils", ""),
        ]:
            (root / "fcp" / room).mkdir(parents=True)
            (root / "fcp" / room / "a.h").write_text(text)
        found = list(complaints(root))
        assert len(found) == 3, found


def main():
    self_test()
    found = list(complaints(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "includes point downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
