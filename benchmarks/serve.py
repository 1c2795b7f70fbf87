"""fcp serve beside FastAPI on uvicorn with onnxruntime, and beside itself under load, over loopback.

    python benchmarks/serve.py build/release/bin/fcp [--seconds 10] [--rounds 3] [--connections 1,16,64]

needs wrk, and fastapi, uvicorn and onnxruntime from PyPI; a peer that is not installed is left out.
Both serve the same calibrated network, fcp the file itself and onnxruntime what `fcp export` made of
it, and get the same JSON of one row; their answers are compared first. They are measured in turns,
each alone, so that what else the machine does hurts both. The median of the rounds is printed.

    python benchmarks/serve.py build/release/bin/fcp --beside [--before OTHER/fcp] [--seconds 10]

measures instead how long small requests take while another client asks for much: batches of 10,000
rows for so many seconds, 65,536 rows at 16 levels, a body of 62 MiB, and 10,000 truths at once; and
what memory the server has kept a moment after. With --before beside another build of the program.
"""

import argparse
import http.client
import importlib.util
import json
import multiprocessing
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

PATH = "/v2/models/calibrated/infer"

APP = '''
import json
import numpy as np
import onnxruntime
from fastapi import FastAPI, Request, Response

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession("exported.onnx", options)
name = session.get_inputs()[0].name
outputs = [output.name for output in session.get_outputs()]
app = FastAPI()

@app.get("/v2/health/ready")
async def ready():
    return {"ready": True}

@app.post("/v2/models/calibrated/infer")
async def infer(request: Request):
    tensor = (await request.json())["inputs"][0]
    x = np.array(tensor["data"], dtype=np.float32).reshape(tensor["shape"])
    found = session.run(None, {name: x})
    answer = {"model_name": "calibrated", "outputs": [
        {"name": n, "datatype": "FP32", "shape": list(v.shape), "data": v.ravel().tolist()}
        for n, v in zip(outputs, found)]}
    return Response(json.dumps(answer), media_type="application/json")
'''

SCRIPT = '''
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local file = io.open("body.json")
wrk.body = file:read("*a")
'''


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def make_files(program, folder):
    """A small network on the demo's table, calibrated and exported, and a request."""
    def fcp(*arguments):
        subprocess.run([program, *arguments, "--quiet", "--threads", "1"], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL)

    with subprocess.Popen([program, "demo", "--out", folder, "--threads", "1"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as demo:
        demo.stdout.readline()  # the tables are there when the first command is shown
        demo.kill()
    fcp("train", "train.csv", "--target", "minutes", "--recipe", "paper", "--epochs", "20", "--out",
        "model.onnx")
    fcp("calibrate", "model.onnx", "--data", "calibration.csv", "--target", "minutes", "--score",
        "nested", "--out", "calibrated.onnx")
    fcp("export", "calibrated.onnx", "--out", "exported.onnx")
    for name, text in (("app.py", APP), ("post.lua", SCRIPT)):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def wait_for(port, process):
    until = time.monotonic() + 120
    while time.monotonic() < until and process.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5).read()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"no answer from {process.args}")


def write_body(folder, port):
    facts = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/calibrated"))
    tensor = facts["inputs"][0]
    size = tensor["shape"][1]
    body = {"inputs": [{"name": tensor["name"], "shape": [1, size], "datatype": "FP32",
                        "data": [0.25 * i for i in range(size)]}]}
    with open(os.path.join(folder, "body.json"), "w", encoding="utf-8") as file:
        json.dump(body, file)


def answer(folder, port):
    with open(os.path.join(folder, "body.json"), "rb") as file:
        request = urllib.request.Request(f"http://127.0.0.1:{port}{PATH}", file.read(),
                                         {"Content-Type": "application/json"})
    outputs = json.load(urllib.request.urlopen(request))["outputs"]
    return {output["name"]: output["data"][0] for output in outputs
            if output["name"] in ("lower", "upper")}


def milliseconds(text):
    number, unit = re.fullmatch(r"([0-9.]+)(us|ms|s)", text).groups()
    return float(number) * {"us": 1e-3, "ms": 1, "s": 1e3}[unit]


def load(folder, port, connections, options):
    text = subprocess.run(
        ["wrk", "--threads", "1", "--connections", str(connections), "--duration",
         f"{options.seconds}s", "--latency", "--script", "post.lua",
         f"http://127.0.0.1:{port}{PATH}"],
        cwd=folder, check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in text or "Socket errors" in text:
        sys.exit(text)
    return {"requests_per_second": float(re.search(r"Requests/sec: +([0-9.]+)", text)[1]),
            "p50_ms": milliseconds(re.search(r"50% +(\S+)", text)[1]),
            "p99_ms": milliseconds(re.search(r"99% +(\S+)", text)[1])}


def servers(program, folder):
    """The commands by name, each with {port} in it."""
    found = {"fcp serve": [program, "serve", "calibrated.onnx", "--port", "{port}", "--threads", "1"]}
    if all(importlib.util.find_spec(name) for name in ("fastapi", "uvicorn", "onnxruntime")):
        for workers in ("1", "2"):
            found[f"FastAPI, {workers} worker" + "s" * (workers > "1")] = [
                sys.executable, "-m", "uvicorn", "app:app", "--port", "{port}", "--workers", workers,
                "--log-level", "warning", "--no-access-log"]
    else:
        print("FastAPI, uvicorn or onnxruntime is not installed", file=sys.stderr)
    return found


def measure(command, folder, options):
    port = free_port()
    process = subprocess.Popen([part.replace("{port}", str(port)) for part in command], cwd=folder,
                               stderr=subprocess.DEVNULL)
    try:
        wait_for(port, process)
        if not os.path.exists(os.path.join(folder, "body.json")):
            write_body(folder, port)
        said = answer(folder, port)
        return said, {count: load(folder, port, count, options) for count in options.connections}
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def body_of(rows, size, levels="0.1", name="", identity=None):
    x = [(7 * i % 101) / 25 for i in range(rows * size)]
    body = {"inputs": [{"name": name, "shape": [rows, size], "datatype": "FP32", "data": x}],
            "parameters": {"alpha": levels}}
    return json.dumps({**body, **({"id": identity} if identity else {})}).encode()


def post(port, path, body, seconds, done, statuses):
    """Asks for much until the time is over, in a process of its own; says when it has been answered."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    until, found = time.monotonic() + seconds, []
    while not found or time.monotonic() < until:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        found.append(answer.status)
    statuses.put(found)
    done.value = 1


def probe(port, path, body, done, seconds=600):
    """The times of small requests, one after the other, until the other client is answered."""
    times, until = [], time.monotonic() + seconds
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    while not done.value and time.monotonic() < until:
        start = time.monotonic()
        connection.request("POST" if body else "GET", path, body,
                           {"Content-Type": "application/json"} if body else {})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f"{path}: {answer.status}")
        times.append(1e3 * (time.monotonic() - start))
        time.sleep(0.002)
    return sorted(times)


def beside(port, small, path, body, seconds=0):
    """Times of the small request (path, body) while `body` is posted, and what became of that."""
    done, statuses = multiprocessing.Value("i", 0), multiprocessing.Queue()
    process = multiprocessing.Process(target=post,
                                      args=(port, path, body, seconds, done, statuses))
    start = time.monotonic()
    process.start()
    times = probe(port, *small, done)
    took = time.monotonic() - start
    found = statuses.get(timeout=60)
    process.join()
    said = ", ".join(f"{found.count(status)} × {status}" for status in sorted(set(found)))
    return {"p50_ms": statistics.median(times), "slowest_ms": times[-1], "small": len(times),
            "other": f"{said} in {took:.1f} s"}


def resident_mib(process):
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def serve_beside(program, folder, *arguments):
    port = free_port()
    return port, subprocess.Popen(
        [program, "serve", "calibrated.onnx", "--port", str(port), "--max-body", "64MB",
         "--timeout", "600", *arguments], cwd=folder, stderr=subprocess.DEVNULL)


def measure_beside(program, folder, seconds):
    """One server after the other, so that each has the machine for itself."""
    port, process = serve_beside(program, folder)
    try:
        wait_for(port, process)
        facts = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/models/calibrated"))
        name, size = facts["inputs"][0]["name"], facts["inputs"][0]["shape"][1]
        one = (PATH, body_of(1, size, name=name))
        alone = probe(port, *one, multiprocessing.Value("i", 0), seconds)
        zeros = (b'{"inputs":[{"name":"x","datatype":"FP32","data":[0' + b",0" * (31 * 2**20) +
                 b"]}]}")
        levels = ",".join(f"{i / 100:.2f}" for i in range(1, 17))
        before = resident_mib(process)
        found = {
            "one row, alone": {"p50_ms": statistics.median(alone), "slowest_ms": alone[-1],
                               "small": len(alone), "other": ""},
            "one row beside batches of 10,000 rows": beside(
                port, one, PATH, body_of(10_000, size, name=name), seconds),
            "one row beside 65,536 rows at 16 levels": beside(
                port, one, PATH, body_of(65_536, size, levels, name)),
            "health beside a body of 62 MiB": beside(port, ("/v2/health/live", None), PATH, zeros)}
        time.sleep(5)
        memory = f"{before:.0f} MiB before, {resident_mib(process):.0f} MiB 5 s after"
    finally:
        process.kill()
        process.wait()
    port, process = serve_beside(program, folder, "--state", tempfile.mkdtemp(dir=folder))
    try:
        wait_for(port, process)
        rows = 10_000
        bulk = body_of(rows, size, name=name, identity="bulk")
        beside(port, ("/v2/health/live", None), PATH, bulk)
        truths = json.dumps({"feedback": [{"id": "bulk", "row": i, "truth": i % 60}
                                          for i in range(rows)]}).encode()
        found["one row beside 10,000 truths"] = beside(
            port, one, "/v2/models/calibrated/feedback", truths)
    finally:
        process.kill()
        process.wait()
    return found, memory


def compare_beside(options, folder):
    programs = {"": os.path.abspath(options.program)}
    if options.before:
        programs = {"before: ": os.path.abspath(options.before), "now: ": programs[""]}
    found = {prefix: measure_beside(program, folder, options.seconds)
             for prefix, program in programs.items()}
    print("| | requests | p50, ms | slowest, ms | the other client |\n|---|---|---|---|---|")
    for name in found[list(found)[-1]][0]:
        for prefix, (times, _) in found.items():
            one = times[name]
            print(f"| {prefix}{name} | {one['small']:,} | {one['p50_ms']:.2f} | "
                  f"{one['slowest_ms']:,.0f} | {one['other']} |")
    for prefix, (times, memory) in found.items():
        alone, batches = (times[name]["p50_ms"] for name in list(times)[:2])
        print(f"\n{prefix}p50 beside batches is {batches / alone:.1f} times that alone; resident "
              f"memory {memory}; load {os.getloadavg()[0]:.0f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", default="1,16,64",
                        type=lambda text: [int(one) for one in text.split(",")])
    parser.add_argument("--beside", action="store_true")
    parser.add_argument("--before")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        make_files(program, folder)
        if options.beside:
            return compare_beside(options, folder)
        commands = servers(program, folder)
        found, said = {name: [] for name in commands}, {}
        for _ in range(options.rounds):
            for name, command in commands.items():
                said[name], numbers = measure(command, folder, options)
                found[name].append(numbers)
        first = said["fcp serve"]
        for name, other in said.items():
            for end, value in first.items():
                if abs(value - other[end]) > 1e-4 * max(1, abs(value)):
                    sys.exit(f"{name} answers {other}, fcp serve {first}")
    print(f"{options.rounds} rounds of {options.seconds} s, load {os.getloadavg()[0]:.0f}\n")
    print("| connections | | requests/s | p50, ms | p99, ms |\n|---|---|---|---|---|")
    for count in options.connections:
        for name, rounds in found.items():
            middle = {key: statistics.median(one[count][key] for one in rounds)
                      for key in rounds[0][count]}
            print(f"| {count} | {name} | {middle['requests_per_second']:,.0f} | "
                  f"{middle['p50_ms']:.2f} | {middle['p99_ms']:.2f} |")


if __name__ == "__main__":
    main()
