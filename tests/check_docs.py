#!/usr/bin/env python3
"""Fails where a page names a file, a test or a name inside of files that does not exist, links to
nothing, is not part of the site, or lists other modules, operators, scores or calibrations than the
sources have; and where a walk through the code is too long, miscounted or leaves the includes."""
import pathlib
import re
import sys

from check_includes import BELOW

FOLDERS = "apps|benchmarks|cmake|deploy|docs|examples|fcp|fuzz|include|python|scripts|tests"
NAMED = re.compile(rf"`((?:{FOLDERS})/[\w./*-]+)`")
# Replaced by others when a file is read.
REWRITTEN = {("ai.onnx", name) for name in (
    "SequenceConstruct SequenceEmpty SequenceInsert SequenceErase SequenceAt SequenceLength "
    "SplitToSequence ConcatFromSequence").split()} | {("ai.onnx.ml", "ZipMap")}
# Of docs/how_it_works.md, in their order: each a straight line through the code.
WALKS = ["`fcp calibrate`", "`fcp predict`", "`fcp fit`", "a served request"]
LONGEST_WALK = 20
LINK = re.compile(r"\]\((?!https?:)([^)\s]*)\)")
# A file by its name alone, as a table does that has named the folder, and a test of C++.
FILE = re.compile(r"`(\w+\.(?:cc|h|py|js))`")
TEST = re.compile(r"`([A-Z]\w+\.[A-Z]\w+)`")


def anchors(text):
    """The anchors of a page's headings, as the usual renderers make them."""
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.M):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def operator_complaints(root):
    """The operators that fcp has beside those that docs/networks.md lists, domain by domain."""
    lines = (root / "fcp/nn/ops/operators.inc").read_text(encoding="utf-8")
    runs = set(re.findall(r'^FCP_OPERATOR\("([\w.]+)", "(\w+)"', lines, flags=re.M))
    page = (root / "docs/networks.md").read_text(encoding="utf-8")
    listed = set()
    for cell in re.findall(r"^\| ([^|]+) \|", page.split("| operators |")[1].split("\n\n")[0], flags=re.M):
        domain = re.match(r"`([\w.]+)`: ", cell)
        words = re.findall(r"\b[A-Z]\w+", re.sub(r"\([^)]*\)", "", cell))
        listed |= {(domain[1] if domain else "ai.onnx", word) for word in words}
    for domain, name in sorted(runs - listed):
        yield f"networks.md: the table of operators lacks {name} of {domain}, which operators.inc has"
    for domain, name in sorted(listed - runs - REWRITTEN):
        yield f"networks.md: the table of operators has {name} of {domain}, which operators.inc lacks"


def included(root, file):
    """The headers that a file and its own header include, and so on."""
    found, left = set(), [file, file.with_suffix(".h")]
    while left:
        path = left.pop()
        if path in found or not path.exists():
            continue
        found.add(path)
        for name in re.findall(r'^#include ["<]((?:fcp|apps)/[\w./]+)[">]', path.read_text(encoding="utf-8"),
                               flags=re.M):
            left += [root / name, root / "include" / name]
    return found - {file}


def walk_complaints(root):
    """What is wrong with the walks of docs/how_it_works.md: lines such as `* calibrate, 3 files: `a` → …`."""
    page = (root / "docs/how_it_works.md").read_text(encoding="utf-8")
    walks = re.findall(r"^\* ([^,\n]+), (\d+) files: (.+)$", page, flags=re.M)
    if [name for name, _, _ in walks] != WALKS:
        yield f"how_it_works.md: has the walks {[name for name, _, _ in walks]}, expected {WALKS}"
    for name, count, text in walks:
        files = [root / file for file in re.findall(r"`([^`]+)`", text)]
        if len(files) != int(count) or len(files) > LONGEST_WALK:
            yield f"how_it_works.md: the walk of {name} has {len(files)} files, says {count}, at most {LONGEST_WALK}"
        if len(set(files)) != len(files):
            yield f"how_it_works.md: the walk of {name} comes by a file twice"
        seen, folders = set(), set()
        for file in files:
            own = {file.with_suffix(".h"), root / "include/fcp" / f"{file.stem}.h"}
            if file is not files[0] and file.parent not in folders and not own & seen:
                yield f"how_it_works.md: the walk of {name} has {file.relative_to(root)}, which nothing before it includes"
            seen |= included(root, file)
            folders.add(file.parent)


def sources(root, *folders):
    return "\n".join(path.read_text(encoding="utf-8", errors="replace")
                     for folder in folders for path in sorted((root / folder).rglob("*"))
                     if path.suffix in (".cc", ".h", ".py"))


def name_complaints(root):
    """Files by their names, tests, what lies in a file under which name, and names of methods."""
    files = {path.name for folder in FOLDERS.split("|") for path in (root / folder).rglob("*.*")}
    tests = {".".join(names) for names in
             re.findall(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", sources(root, "tests"))}
    for page in sorted([*root.glob("*.md"), *root.glob("docs/*.md")]):
        text = page.read_text(encoding="utf-8")
        for name in set(FILE.findall(text)) - files:
            yield f"{page.name}: names {name}, which does not exist"
        for name in set(TEST.findall(text)) - tests:
            yield f"{page.name}: names the test {name}, which does not exist"
    code = sources(root, "fcp", "python")
    for name in re.findall(r"`(fcp\.[a-z_.0-9]+)`", (root / "docs/formats.md").read_text(encoding="utf-8")):
        if f'"{name}"' not in code:
            yield f"formats.md: names {name}, which no source writes"
    told = "".join((root / "docs" / name).read_text(encoding="utf-8")
                   for name in ("networks.md", "classification.md"))
    for name in re.findall(r'char kName\[\] = "(\w+)"', sources(root, "fcp/methods")):
        if name != "cross_labels" and not re.search(rf"`{name}\b", told):
            yield f"networks.md and classification.md do not say what {name} is"


def complaints(root):
    for page in sorted([*root.glob("*.md"), *root.glob("docs/*.md")]):
        text = page.read_text(encoding="utf-8")
        for name in NAMED.findall(text):
            places = (root, root / "include")
            if not any(found for place in places
                       for found in [*place.glob(name), *place.glob(name + ".*")]):
                yield f"{page.name}: names {name}, which does not exist"
        for target in LINK.findall(text):
            path, _, anchor = target.partition("#")
            linked = page.parent / path if path else page
            if not linked.exists():
                yield f"{page.name}: links to {target}, which does not exist"
            elif anchor and anchor not in anchors(linked.read_text(encoding="utf-8")):
                yield f"{page.name}: links to {target}, but {linked.name} has no such heading"
    site = (root / "mkdocs.yml").read_text(encoding="utf-8")
    pages = set(re.findall(r": (\w+\.md)$", site, flags=re.M))
    for name in sorted(pages ^ {page.name for page in root.glob("docs/*.md")}):
        yield f"mkdocs.yml and docs/ have different pages: {name}"
    yield from operator_complaints(root)
    yield from walk_complaints(root)
    yield from name_complaints(root)
    table = (root / "CONTRIBUTING.md").read_text(encoding="utf-8").split("| module |")[1]
    listed = set(re.findall(r"^\| `([\w/]+)` \|", table.split("\n\n")[0], flags=re.M))
    for module in sorted(listed ^ set(BELOW)):
        where = "CONTRIBUTING.md" if module in listed else "check_includes.py"
        yield f"CONTRIBUTING.md and check_includes.py list different modules: {module} is only in {where}"


if __name__ == "__main__":
    found = list(complaints(pathlib.Path(sys.argv[1])))
    print("\n".join(found))
    sys.exit(bool(found))
