"""fcp serve beside FastAPI on uvicorn with onnxruntime: one-row infer requests over loopback.

    python benchmarks/serve.py build/release/bin/fcp [--seconds 10] [--rounds 3] [--connections 16]

needs wrk, and fastapi, uvicorn and onnxruntime from PyPI; a peer that is not installed is left out.
Both serve the same calibrated network, fcp the file itself and onnxruntime what `fcp export` made
of it, and get the same JSON; their answers are compared first. They are measured in turns, each
alone, so that what else the machine does hurts both. The median of the rounds is printed.
"""

import argparse
import importlib.util
import json
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


def load(folder, port, options):
    text = subprocess.run(
        ["wrk", "--threads", "1", "--connections", str(options.connections), "--duration",
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
        return said, load(folder, port, options)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    with tempfile.TemporaryDirectory() as folder:
        make_files(program, folder)
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
    print(f"{options.connections} connections, {options.rounds} rounds of {options.seconds} s\n")
    print("| | requests/s | p50, ms | p99, ms |\n|---|---|---|---|")
    for name, rounds in found.items():
        middle = {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}
        print(f"| {name} | {middle['requests_per_second']:,.0f} | {middle['p50_ms']:.2f} | "
              f"{middle['p99_ms']:.2f} |")


if __name__ == "__main__":
    main()
