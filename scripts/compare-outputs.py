#!/usr/bin/env python3
"""Compares what two builds of fcp write, byte by byte, on a fixed list of commands.

    scripts/compare-outputs.py BEFORE AFTER [--only REGEX] [--keep FOLDER]
    scripts/compare-outputs.py BEFORE --record FILE     then FILE stands for BEFORE
    scripts/compare-outputs.py --list [--only REGEX]

BEFORE and AFTER are build folders: bin/fcp, python/ and examples/ lie in them. All commands of a
build run in one folder, in their order, with the same files under the same names. Compared are exit
codes, standard output and error, and all files that were written; only durations are masked. One
line per command says `same`, or what differs and where first, and how long both took. Exit code 1:
something differs that is not listed in EXPECTED, or BEFORE did not end as it is known to end.

A file that differs is reported once: commands that read it get BEFORE's in both folders.

The commands are in compare_outputs/commands.py, their data in compare_outputs/data.py. --only runs
those whose names match, and those that make their files. --keep leaves both folders there. With a
record of BEFORE a comparison takes half the time.

It is here while the library is being rearranged and its outputs must stay as they are; afterwards
it goes."""
import argparse
import concurrent.futures
import dataclasses
import hashlib
import os
import pathlib
import pickle
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "compare_outputs"))
import commands  # noqa: E402
import data  # noqa: E402
import onnx_files  # noqa: E402

# Differences that are meant: regular expressions of the command's name and of what differs (a file,
# "stdout", "stderr", "exit code"), and why.
EXPECTED = []

MASKS = [(re.compile(pattern.encode()), text.encode()) for pattern, text in (
    (r'"seconds": ?[-+.\de]+', '"seconds": SECONDS'),
    (r"(trained in) [-+.\de,]+ s\b", r"\1 SECONDS"),
    (r"(cells?), \S+ s of cells", r"\1, SECONDS of cells"),
    (r"(?m)^.* \[[= ]*>?[= ]*\] .*\n", ""),  # progress, a line for each half minute
)]
NEWLINE = b"\n"
LONGEST = 600  # seconds for one command
RECORD = "outputs of fcp"
HELPERS = pathlib.Path(__file__).resolve().parent / "compare_outputs"


@dataclasses.dataclass
class Result:
    code: int
    streams: dict  # "stdout", "stderr": bytes
    files: dict    # of those that were written: name and bytes, or None where a file was removed


class Side:
    """A build, and the folder in which its commands run."""

    def __init__(self, name, build, root):
        self.build = pathlib.Path(build).resolve()
        if not (self.build / "bin" / "fcp").exists():
            sys.exit(f"{build}: has no bin/fcp")
        self.folder = pathlib.Path(root, name)
        self.folder.mkdir()
        data.write_all(self.folder)
        self.known = self.stamps()

    def python(self):
        """The interpreter that the package was built for."""
        cache = self.build / "CMakeCache.txt"
        found = re.search(r"^FCP_PYTHON:\w+=(.+)$", cache.read_text(), re.M) if cache.exists() else None
        return found.group(1) if found else "/usr/bin/python3"

    def argv(self, command):
        start, *rest = command.words()
        fcp = str(self.build / "bin" / "fcp")
        if command.kind == "package":
            return [self.python(), "-B", str(HELPERS / "package.py"), start, *rest]
        if command.kind == "server":
            return [sys.executable, "-B", str(HELPERS / "server.py"), fcp, start, *rest]
        if command.kind == "example":
            return [str(self.build / "examples" / start), *rest]
        if command.kind == "ranks":
            return ["mpirun", "-q", "--oversubscribe", "--allow-run-as-root", "-n", "2", fcp, start,
                    *rest]
        return [fcp, start, *rest]

    def missing(self, command):
        """What the command needs and this build does not have."""
        program = self.argv(command)[0]
        return "" if shutil.which(program) else f"{program} is not there"

    def stamps(self):
        found = {}
        for path in sorted(self.folder.rglob("*")):
            if path.is_file():
                status = path.stat()
                found[str(path.relative_to(self.folder))] = (status.st_mtime_ns, status.st_size,
                                                             status.st_ino)
        return found

    def run(self, command):
        # No HOME: nothing of the user's may count.
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "1",
                       "OMPI_MCA_plm_rsh_agent": "", "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
                       "PYTHONPATH": str(self.build / "python")}
        stdin = (self.folder / command.stdin).read_bytes() if command.stdin else b""
        try:
            done = subprocess.run(self.argv(command), cwd=self.folder, env=environment, input=stdin,
                                  capture_output=True, timeout=LONGEST, check=False)
        except subprocess.TimeoutExpired:
            done = subprocess.CompletedProcess([], -1, b"", b"was still running after %d s" % LONGEST)
        stamps = self.stamps()
        files = {name: (self.folder / name).read_bytes() if name in stamps else None
                 for name in sorted(stamps.keys() | self.known.keys())
                 if stamps.get(name) != self.known.get(name) and not command.ignores(name)}
        self.known = stamps
        for name, content in files.items():
            if content is not None and name.endswith((".json", ".html", ".md")):
                files[name] = mask(content, self)
        streams = {"stdout": mask(done.stdout, self), "stderr": mask(done.stderr, self)}
        return Result(done.returncode, streams, files)

    def put(self, name, content):
        """What the other side has, for the commands that follow."""
        path = self.folder / name
        if content is None:
            path.unlink(missing_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        self.known = self.stamps()


class Record:
    """What a build answered before, in place of the build."""

    def __init__(self, path):
        with open(path, "rb") as file:
            kind, scripts, self.results = pickle.load(file)
        if kind != RECORD or scripts != digest_of_scripts():
            sys.exit(f"{path}: was recorded with other commands or data; record it again")

    @staticmethod
    def write(path, results):
        with open(path, "wb") as file:
            pickle.dump((RECORD, digest_of_scripts(), results), file)

    def missing(self, command):
        return "" if command.name in self.results else f"{command.name} is not recorded"

    def run(self, command):
        return Result(*self.results[command.name])


def digest_of_scripts():
    digest = hashlib.sha256(repr([(pattern.pattern, text) for pattern, text in MASKS]).encode())
    for path in sorted(HELPERS.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def processor_seconds():
    """Of all commands so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def mask(text, side):
    for pattern, replacement in MASKS:
        text = pattern.sub(replacement, text)
    for path, name in ((side.folder, b"FOLDER"), (side.build, b"BUILD")):
        text = text.replace(os.fsencode(str(path)), name)
    return text


def excerpt(content, place, width=60):
    start = max(0, place - width // 3)
    piece = content[start:place + width].decode("utf-8", "backslashreplace")
    return ("…" if start else "") + repr(piece)[1:-1]


def first_difference(name, before, after):
    """Where two contents differ first, with what is there; of networks by what they are made of."""
    if before is None or after is None:
        return f"written by {'BEFORE' if after is None else 'AFTER'} alone"
    prefix = ""
    if name.endswith(".onnx"):
        pieces, others = onnx_files.pieces(before), onnx_files.pieces(after)
        for piece in [*pieces, *others]:
            if pieces.get(piece) != others.get(piece):
                if piece not in pieces or piece not in others:
                    return f"{piece} in {'BEFORE' if piece in pieces else 'AFTER'} alone"
                prefix, before, after = f"{piece}, ", pieces[piece], others[piece]
                break
    place = next((i for i, (a, b) in enumerate(zip(before, after)) if a != b),
                 min(len(before), len(after)))
    text = not name.endswith((".onnx", ".npy", ".png"))
    where = f"line {before.count(NEWLINE, 0, place) + 1}" if text else f"byte {place}"
    return f"{prefix}{where}: {excerpt(before, place)} | {excerpt(after, place)}"


def differences(before, after):
    """Pairs: what differs, and where first."""
    found = []
    if before.code != after.code:
        found.append(("exit code", f"{before.code} | {after.code}"))
    for name, text in before.streams.items():
        if text != after.streams[name]:
            found.append((name, first_difference(name, text, after.streams[name])))
    for name in sorted(before.files.keys() | after.files.keys()):
        if before.files.get(name) != after.files.get(name):
            found.append((name, first_difference(name, before.files.get(name), after.files.get(name))))
    return found


def reason_for(command, what):
    for place, (name, file, reason) in enumerate(EXPECTED):
        if re.fullmatch(name, command.name) and re.fullmatch(file, what):
            return place, reason
    return None, None


def unexpected_end(command, before):
    """One line where the command did not end as it is known to end, else none."""
    if before.code == command.code:
        return []
    said = (before.streams["stderr"] or before.streams["stdout"])[-300:].decode(errors="replace")
    return [f"BEFORE ended with {before.code}, expected {command.code}: {said.strip()}"]


class Comparison:
    def __init__(self, before, after):
        self.sides = (before, after)
        self.pool = concurrent.futures.ThreadPoolExecutor(2)
        self.seen = set()  # places in EXPECTED
        self.counts = {"same": 0, "expected": 0, "differs": 0, "left out": 0}

    def compare(self, command):
        reasons = list(filter(None, (side.missing(command) for side in self.sides)))
        if reasons:
            self.counts["left out"] += 1
            print(f"{command.name}: left out: {reasons[0]}", flush=True)
            return
        start = processor_seconds()
        before, after = self.pool.map(lambda side: side.run(command), self.sides)
        seconds = processor_seconds() - start
        found = differences(before, after)
        lines = unexpected_end(command, before)
        outcome = "differs" if lines else "same"
        for what, where in found:
            place, why = reason_for(command, what)
            if why:
                self.seen.add(place)
                lines.append(f"{what} differs as expected ({why})")
                outcome = "expected" if outcome == "same" else outcome
            else:
                lines.append(f"{what}: {where}")
                outcome = "differs"
            if what in before.files or what in after.files:
                self.sides[1].put(what, before.files.get(what))
        self.counts[outcome] += 1
        summary = "DIFFERS" if outcome == "differs" else "same"
        print(f"{command.name}: {summary} ({len(before.files)} files, {seconds:.1f} s)" +
              "".join(f"\n    {line}" for line in lines), flush=True)


def chosen(every, only):
    """The commands that match, and those before them that write what they read, in order."""
    wanted = {command.name for command in every if re.search(only, command.name)}
    writes = [command.writes() for command in every]
    for place in range(len(every) - 1, -1, -1):
        if every[place].name in wanted:
            reads = every[place].reads()
            wanted.update(other.name for other, made in zip(every[:place], writes) if made & reads)
    return [command for command in every if command.name in wanted]


def record(build, path, selected):
    """Runs the commands with one build and keeps what they write."""
    results, used = {}, processor_seconds()
    with tempfile.TemporaryDirectory(prefix="fcp-compare-") as root:
        side = Side("before", build, root)
        for command in selected:
            if not side.missing(command):
                found = side.run(command)
                results[command.name] = (found.code, found.streams, found.files)
                for line in unexpected_end(command, found):
                    print(f"{command.name}: {line}", flush=True)
    Record.write(path, results)
    print(f"{path}: {len(results)} commands, {processor_seconds() - used:.0f} s of processor time")


def compare(before, after, selected, root, complete):
    """Whether nothing differs that is not expected."""
    start, used = time.monotonic(), processor_seconds()
    before = Record(before) if os.path.isfile(before) else Side("before", before, root)
    comparison = Comparison(before, Side("after", after, root))
    for command in selected:
        comparison.compare(command)
    for place, (name, file, reason) in enumerate(EXPECTED):
        if complete and place not in comparison.seen:
            print(f"expected difference not seen: {name} {file} ({reason})")
    print(", ".join(f"{count} {what}" for what, count in comparison.counts.items() if count) +
          f"; {processor_seconds() - used:.0f} s of processor time, {time.monotonic() - start:.0f} s")
    return comparison.counts["differs"] == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("before", nargs="?", help="build folder of the version before, or a record of it")
    parser.add_argument("after", nargs="?", help="build folder of the version after")
    parser.add_argument("--only", metavar="REGEX", help="commands with such names, and what they need")
    parser.add_argument("--record", metavar="FILE", help="run BEFORE alone and keep what it writes")
    parser.add_argument("--list", action="store_true", help="print the commands and end")
    parser.add_argument("--keep", metavar="FOLDER", help="run in a new FOLDER and leave it there")
    flags = parser.parse_args()
    selected = chosen(commands.every_command(), flags.only or "")
    if flags.list:
        for command in selected:
            print(f"{command.name}: {' '.join(command.words())}")
        return 0
    if flags.record and flags.before and not flags.after:
        record(flags.before, flags.record, selected)
        return 0
    if not flags.after or flags.record:
        parser.error("expected BEFORE and AFTER, BEFORE and --record, or --list")
    if flags.keep:
        os.makedirs(flags.keep)
        same = compare(flags.before, flags.after, selected, flags.keep, not flags.only)
    else:
        with tempfile.TemporaryDirectory(prefix="fcp-compare-") as root:
            same = compare(flags.before, flags.after, selected, root, not flags.only)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
