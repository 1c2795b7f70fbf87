#!/usr/bin/env python3
"""Writes docs/commands.md, the list of verbs, from what the program says of itself:

    scripts/commands-page.py build/release/bin/fcp

A test (cli_manual) fails where the page is stale. As a hook of mkdocs it adds the options of every
verb to the site, from FCP_PROGRAM or build/release/bin/fcp where there is one.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "commands.md"
OPENING = """# Commands

<!-- made by scripts/commands-page.py -->
`fcp VERB --help` shows the common options of a verb with examples, `fcp VERB --help-all` all of them, and `fcp man` the manual page. Results go to stdout, progress and messages to stderr; `--json` prints results as JSON.

| verb | what it does |
|---|---|
"""
CLOSING = """
| exit code | meaning |
|---|---|
| 0 | done |
| 1 | data or model is wrong; one line says what, where, and what was expected |
| 2 | the command line is wrong |
| 3 | an alarm of `monitor`, or `evaluate --fail-below` |
"""


def text(program, *arguments):
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE,
                          encoding="utf-8", timeout=120).stdout


def verbs(program):
    """(verb, its line in --help), in that order."""
    return re.findall(r"^  ([a-z_]+) +(.+)$", text(program, "--help").split("Subcommands:")[1], re.M)


def page(program):
    rows = "".join(f"| `{verb}` | {line} |\n" for verb, line in verbs(program))
    return OPENING + rows + CLOSING


def on_page_markdown(markdown, page, **_):
    """mkdocs: the page of commands with the options of every verb."""
    program = os.environ.get("FCP_PROGRAM", str(ROOT / "build/release/bin/fcp"))
    if page.file.src_path != PAGE.name or not os.access(program, os.X_OK):
        return markdown
    return markdown + "".join(f"\n## fcp {verb}\n\n```text\n{text(program, verb, '--help-all')}```\n"
                              for verb, _ in verbs(program))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: scripts/commands-page.py PROGRAM")
    PAGE.write_text(page(sys.argv[1]), encoding="utf-8")
