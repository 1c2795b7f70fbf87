#!/usr/bin/env python3
"""Makes a Markdown table of what zoo.py --json wrote: python zoo_table.py RESULTS.

One row per network; where both of torch's exporters made it, the old one's numbers stand before the
new one's. Of several lines for one network the last counts.
"""

import json
import sys


def read_results(path):
    """{network: {exporter: line}}; the exporter is "" where there is one way only."""
    networks = {}
    with open(path) as file:
        for line in file:
            found = json.loads(line)
            name, _, exporter = found["name"].partition(":")
            networks.setdefault(name, {})[exporter] = found
    return networks


def cell(found, key):
    if found.get("made") is False:
        return "not made"
    value = found.get(key) or "–"
    return ", ".join(value) if isinstance(value, list) else value


def joined(lines, key):
    """What both exporters have in common once, otherwise both."""
    cells = [cell(found, key) for found in lines]
    return cells[0] if len(set(cells)) == 1 else " / ".join(cells)


def note(lines):
    """What does not work, as fcp or the exporter says it, once."""
    texts = []
    for found in lines:
        if found.get("made") is False:
            found = {"why": "the exporter: " + found["why"].split(":")[0]}
        for text in (found.get("refused", ""), found.get("why", "")):
            text = text.replace("fcp: ", "").replace("|", "/").strip()
            text = text.split("; cut later")[0]
            if text and text[:20] not in [other[:20] for other in texts]:
                texts.append(text[:160])
    return "; ".join(texts)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: zoo_table.py RESULTS")
    print("| network | forward | scores | export | refused |\n|---|---|---|---|---|")
    for name, exporters in read_results(sys.argv[1]).items():
        lines = [exporters[key] for key in ("", "old", "new") if key in exporters]
        print(f"| {name} | {joined(lines, 'forward')} | {joined(lines, 'scores')} "
              f"| {joined(lines, 'export')} | {note(lines)} |")


if __name__ == "__main__":
    main()
