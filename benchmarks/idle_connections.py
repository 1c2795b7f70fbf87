"""fcp serve while thousands of others hold connections: how long a request takes, and what memory.

    python benchmarks/idle_connections.py build/release/bin/fcp [--connections 10000] [--requests 200]

Half of the others are idle, a quarter has sent half a body, and a quarter sends a byte now and then.
A client asks meanwhile, each time on a new connection; first alone, then beside them. Prints p50 and
p99 in ms and the resident memory of the server in MiB. Linux; as many files must be allowed to be
open (ulimit -n, raised here as far as it may be).
"""

import argparse
import http.client
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

from serve import PATH, free_port, make_files, wait_for, write_body
from soak import resident


def latencies(port, body, count):
    """Milliseconds, sorted; an answer other than 200 ends it."""
    found = []
    for _ in range(count):
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("POST", PATH, body, {"Connection": "close"})
        response = connection.getresponse()
        response.read()
        connection.close()
        found.append(1000 * (time.monotonic() - begin))
        if response.status != 200:
            sys.exit(f"answered {response.status}")
    return sorted(found)


def report(name, found, process):
    print(f"| {name} | {found[len(found) // 2]:.1f} | {found[99 * len(found) // 100]:.1f} | "
          f"{resident(process.pid) / 2**20:.1f} |", flush=True)


def hold(port, count, body):
    """The others: idle, with half a body, and slow, in this order."""
    head = (f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n").encode()
    others = []
    for i in range(count):
        one = socket.create_connection(("127.0.0.1", port), 60)
        if i % 4 == 2:
            one.sendall(head + body[:len(body) // 2])
        elif i % 4 == 3:
            one.sendall(head[:8])
        others.append(one)
    return others, head


def drip(others, head, stop):
    """A byte from each of the slow ones in turn."""
    for at in range(8, len(head)):
        for one in others[3::4]:
            if stop.is_set():
                return
            try:
                one.sendall(head[at:at + 1])
            except OSError:
                pass  # its time was up
        stop.wait(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=200)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with tempfile.TemporaryDirectory() as folder:
        make_files(program, folder)
        port = free_port()
        process = subprocess.Popen(
            [program, "serve", "calibrated.onnx", "--port", str(port), "--threads", "1", "--quiet",
             "--max-connections", str(options.connections + 100), "--request-seconds", "600",
             "--idle-seconds", "600"], cwd=folder)
        wait_for(port, process)
        write_body(folder, port)
        with open(os.path.join(folder, "body.json"), "rb") as file:
            body = file.read()
        latencies(port, body, 20)
        print("| | p50, ms | p99, ms | MiB |\n|---|---|---|---|")
        report("alone", latencies(port, body, options.requests), process)
        others, head = hold(port, options.connections, body)
        stop = threading.Event()
        slow = threading.Thread(target=drip, args=(others, head, stop))
        slow.start()
        report(f"beside {options.connections:,}", latencies(port, body, options.requests), process)
        stop.set()
        slow.join()
        process.send_signal(signal.SIGKILL)
        process.wait()


if __name__ == "__main__":
    main()
