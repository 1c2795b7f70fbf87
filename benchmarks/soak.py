"""fcp serve --state under load: predictions and their truths, and what memory the server needs.

    python benchmarks/soak.py build/release/bin/fcp [--seconds 300] [--every 10] [--clients 4]
                              [--rows 4] [--keep-truths 20000]

Clients ask for a few rows and tell their truths, again and again, each on a connection of its own.
Every so many seconds a line: seconds, requests, truths, resident memory of the server in MiB; at the
end the growth per truth over the second half, and whether every truth was accepted. Also a restart:
how long it takes, and that the monitor is as it was. Needs Linux (/proc).
"""

import argparse
import http.client
import json
import os
import signal
import subprocess
import tempfile
import threading
import time

from serve import free_port, make_files, wait_for

MODEL = "/v2/models/calibrated"


def resident(pid):
    """Bytes."""
    with open(f"/proc/{pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def rows_of(folder):
    """Inputs by column, and truths."""
    with open(os.path.join(folder, "test.csv"), encoding="utf-8") as file:
        header, *lines = [line.rstrip("\n").split(",") for line in file]
    place = header.index("minutes")
    truths = [float(line[place]) for line in lines]
    return [(name, [line[i] for line in lines]) for i, name in enumerate(header) if i != place], truths


class Client(threading.Thread):
    def __init__(self, port, number, table, rows):
        super().__init__(daemon=True)
        self.port, self.number, self.rows = port, number, rows
        self.columns, self.truth = table
        self.stop = threading.Event()
        self.requests = self.truths = self.refused = 0

    def ask(self, connection, path, body):
        connection.request("POST", MODEL + path, json.dumps(body))
        response = connection.getresponse()
        text = response.read()
        self.requests += 1
        return response.status, json.loads(text)

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        turn = 0
        while not self.stop.is_set():
            first = (turn * self.rows) % (len(self.truth) - self.rows)
            some = range(first, first + self.rows)
            name = f"client-{self.number}-{turn}"
            turn += 1
            status, _ = self.ask(connection, "/infer", {"id": name, "inputs": [
                {"name": column, "shape": [self.rows], "datatype": "BYTES",
                 "data": [cells[i] for i in some]} for column, cells in self.columns]})
            if status != 200:
                self.refused += self.rows
                continue
            status, told = self.ask(connection, "/feedback", {"feedback": [
                {"id": name, "row": k, "truth": self.truth[i]} for k, i in enumerate(some)]})
            accepted = told["accepted"] if status == 200 else 0
            self.truths += accepted
            self.refused += self.rows - accepted


def start(program, folder, options):
    port = free_port()
    process = subprocess.Popen(
        [program, "serve", "calibrated.onnx", "--port", str(port), "--threads", "1", "--state",
         "state", "--keep-truths", str(options.keep_truths), "--quiet"], cwd=folder)
    wait_for(port, process)
    return process, port


def monitor(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    connection.request("GET", "/status")
    return json.loads(connection.getresponse().read())["models"][0]["monitor"]


def settled(port, truths):
    """The report once all truths are in it: it is made twice a second."""
    until = time.monotonic() + 60
    while True:
        found = monitor(port)
        if found["rows"] >= truths or time.monotonic() > until:
            return found
        time.sleep(0.1)


def load(process, port, table, options):
    clients = [Client(port, i, table, options.rows) for i in range(options.clients)]
    for client in clients:
        client.start()
    begin, lines = time.monotonic(), []
    print("| seconds | requests | truths | MiB |\n|---|---|---|---|", flush=True)
    while time.monotonic() < begin + options.seconds:
        time.sleep(options.every)
        requests, truths = (sum(getattr(one, what) for one in clients)
                            for what in ("requests", "truths"))
        lines.append((time.monotonic() - begin, requests, truths, resident(process.pid)))
        print(f"| {lines[-1][0]:.0f} | {requests:,} | {truths:,} | {lines[-1][3] / 2**20:.1f} |",
              flush=True)
    for client in clients:
        client.stop.set()
    for client in clients:
        client.join()
    return clients, lines


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    for name, default in (("--seconds", 300), ("--every", 10), ("--clients", 4), ("--rows", 4),
                          ("--keep-truths", 20_000)):
        parser.add_argument(name, type=int, default=default)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        make_files(program, folder)
        process, port = start(program, folder, options)
        clients, lines = load(process, port, rows_of(folder), options)
        truths, refused = (sum(getattr(one, what) for one in clients)
                           for what in ("truths", "refused"))
        before = settled(port, truths)
        process.send_signal(signal.SIGKILL)
        process.wait()
        begin = time.monotonic()
        process, port = start(program, folder, options)
        seconds = time.monotonic() - begin
        after = monitor(port)
        process.send_signal(signal.SIGTERM)
        process.wait()
    middle = lines[len(lines) // 2]
    grown = (lines[-1][3] - middle[3]) / max(1, lines[-1][2] - middle[2])
    print(f"\n{truths:,} truths accepted, {refused:,} not; {grown:.1f} bytes per truth in the second "
          f"half; after kill -9 and {seconds:.1f} s the monitor has {after['rows']:,} rows and is "
          f"{'as it was' if after == before else 'ANOTHER'}")


if __name__ == "__main__":
    main()
