#!/usr/bin/env python3
"""Makes the Markdown table of docs/networks.md from what zoo.py --json wrote:

    python zoo_table.py RESULTS

One row per library: of how many networks there is a file, the largest difference to ONNX Runtime,
and how many give equal regions there once exported. Every exception follows on stderr by its name. Of
several lines for one network and exporter the last counts.
"""

import json
import sys


def read_results(path):
    """{(library, network): {exporter: line}}; the exporter is "" where there is one way only."""
    networks = {}
    with open(path) as file:
        for line in file:
            found = json.loads(line)
            name, _, exporter = found["name"].partition(":")
            library, _, network = name.partition("/")
            networks.setdefault((library, network), {})[exporter] = found
    return networks


def exception(network, found):
    """What does not work, as fcp or the exporter says it; empty where all does."""
    if found.get("made") is False:
        return f"{network}: no file, {found['why'].split(':')[0]}"
    why = (found.get("refused") or found.get("why") or "").replace("fcp: ", "").replace("|", "/")
    if found.get("export") not in (None, "equal"):
        why = f"export {found['export']}" + (f", {why}" if why else "")
    return f"{network}: {why.split(';')[0].strip()[:90]}" if why else ""


def row(library, networks):
    made = {name: [line for line in lines.values() if line.get("made", True)]
            for name, lines in networks.items()}
    made = {name: lines for name, lines in made.items() if lines}
    worst = max((float(line["forward"]) for lines in made.values() for line in lines
                 if line.get("forward")), default=0.0)
    equal = sum(all(line.get("export") == "equal" for line in lines) for lines in made.values())
    return f"| {library} | {len(made)} of {len(networks)} | {worst:.0e} | {equal} of {len(made)} |"


def exceptions(networks):
    """What did not work, each text once, in order."""
    said = (exception(network, line) for network, lines in networks.items()
            for line in lines.values())
    return [text for text in dict.fromkeys(said) if text]


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: zoo_table.py RESULTS")
    libraries = {}
    for (library, network), lines in read_results(sys.argv[1]).items():
        libraries.setdefault(library, {})[network] = lines
    print("| library | networks | largest difference | equal exports |")
    print("|---|---|---|---|")
    for library, networks in libraries.items():
        print(row(library, networks))
        for text in exceptions(networks):
            print(f"{library}: {text}", file=sys.stderr)


if __name__ == "__main__":
    main()
