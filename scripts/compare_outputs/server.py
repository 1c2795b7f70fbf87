"""What the server answers, printed so that two builds can be compared:

    server.py PROGRAM PART MODEL.onnx ...

`fcp serve` runs in the current folder on a free port; ids that it makes and times are masked. The
rows are those of the CSV files beside the models."""
import csv
import http.client
import json
import re
import struct
import subprocess
import sys
import time

PROGRAM, PART, MODELS = sys.argv[1], sys.argv[2], sys.argv[3:]
LONGEST = 120  # seconds
SERVER_ID = re.compile(r"^[0-9a-f]{8}[-0-9a-f]*$")


class Server:
    def __init__(self, *arguments):
        self.process = subprocess.Popen(
            [PROGRAM, "serve", *arguments, "--port", "0", "--threads", "1", "--reload-seconds", "0"],
            stderr=subprocess.PIPE, text=True)
        self.first = self.process.stderr.readline()
        try:
            self.port = json.loads(self.first)["port"]
        except ValueError:
            sys.exit(f"the server said: {self.first}")

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=LONGEST)
        body = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        found = response.status, response.read(), dict(response.getheaders())
        connection.close()
        return found

    def tell(self, method, path, body=None):
        """Asks, and prints the status and the answer."""
        status, text, _ = self.ask(method, path, body)
        try:
            text = json.dumps(masked(without_draws(json.loads(text), path)))
        except ValueError:
            text = text.decode()
        print(f"{method} {path}: {status} {text}")
        return text

    def end(self):
        self.process.terminate()
        rest = self.process.stderr.read()
        code = self.process.wait(LONGEST)
        for line in rest.splitlines():
            print("log:", json.dumps(masked(json.loads(line))) if line.startswith("{") else line)
        print(f"the server ended with {code}")


def without_draws(answer, path):
    """Localized calibration draws anew for each row that comes: of its answers the names, shapes and
    predictions alone can be compared."""
    for output in answer.get("outputs", ()) if "localized" in path else ():
        if output["name"] != "prediction" and "data" in output:
            output["data"] = f"{len(output['data'])} numbers"
    return answer


def masked(value, name=""):
    """Without times, ports, and ids that the server made."""
    if isinstance(value, dict):
        return {key: masked(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [masked(inner, name) for inner in value]
    if name in ("time", "port", "seconds", "uptime", "p50", "p99", "milliseconds", "rss", "memory"):
        return "MASKED"
    if name == "id" and isinstance(value, str) and SERVER_ID.match(value):
        return "ID"
    return value


def table(path, separator=","):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file, delimiter=separator))


def columns(rows, names, numbers=True):
    """Inputs by the names of columns."""
    return [{"name": name, "shape": [len(rows)], "datatype": "FP64" if numbers else "BYTES",
             "data": [float(row[name]) if numbers else row[name] for row in rows]} for name in names]


def tensors(facts, rows, binary=False):
    """Inputs by the names of tensors, from the numbers of rows; whole numbers where they must be."""
    found, numbers = [], [[float(value) for value in row] for row in rows]
    at = 0
    for entry in facts["inputs"]:
        width = entry["shape"][-1]
        data = [value for row in numbers for value in row[at:at + width]]
        whole = entry["datatype"].startswith("INT")
        data = [int(abs(value) * 3) % 10 for value in data] if whole else data
        found.append({"name": entry["name"], "shape": [len(rows), width], "datatype": entry["datatype"],
                      "data": data})
        at += width
    if not binary:
        return found
    data = struct.pack(f"<{len(found[0]['data'])}f", *found[0].pop("data"))
    found[0]["parameters"] = {"binary_data_size": len(data)}
    return found, data


def name_of(path):
    return path.rsplit(".", 1)[0]


def answers():
    server = Server(*MODELS)
    for path in ("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/nobody"):
        server.tell("GET", path)
    test, labels = table("test.csv")[:7], table("ktest.csv")[:7]
    homes = table("newhomes.csv", ";")[:7]
    for name in map(name_of, MODELS):
        facts = json.loads(server.tell("GET", f"/v2/models/{name}"))
        infer = f"/v2/models/{name}/infer"
        server.tell("GET", f"/v2/models/{name}/versions/1/ready")
        if name == "fit":
            parts = columns(homes, ["sold", "kind", "size", "lift", "owner"], numbers=False)
            parts[2]["data"][3] = ""  # a missing cell
        elif name == "lac":
            parts = columns(labels, ["a", "b"])
        elif name == "several_inputs_nested":
            parts = tensors(facts, [list(row.values())[:5] for row in test])
        else:
            parts = columns(test, "abcd")
            rows = [list(row.values())[:4] for row in test]
            server.tell("POST", infer, {"id": "named", "inputs": tensors(facts, rows)})
            head, data = tensors(facts, rows, binary=True)
            head = json.dumps({"inputs": head, "parameters": {"binary_data_output": True}}).encode()
            status, body, headers = server.ask("POST", infer, head + data,
                                               {"Inference-Header-Content-Length": str(len(head))})
            size = int(headers.get("Inference-Header-Content-Length", len(body)))
            data = "drawn" if "localized" in name else body[size:].hex()
            print(f"binary: {status} {json.dumps(masked(json.loads(body[:size])))} {data}")
        server.tell("POST", infer, {"inputs": parts})
        for alpha in ("0.05,0.3", 0.3, "0.0001"):
            server.tell("POST", infer, {"inputs": parts, "parameters": {"alpha": alpha}})
    server.end()


def groups():
    server = Server(*MODELS)
    test, labels = table("test.csv")[:9], table("ktest.csv")[:9]
    for name in map(name_of, MODELS):
        infer = f"/v2/models/{name}/infer"
        server.tell("GET", f"/v2/models/{name}")
        rows, names, extra = (labels, "ab", "side") if name == "labels_by_side" else (test, "abcd", "region")
        plain = columns(rows, names)
        group = columns(rows, [extra], numbers=False)
        weight = [{**columns(test, ["w"])[0], "name": "weights"}] if rows is test else []
        for more in ([], group, weight, group + weight):
            server.tell("POST", infer, {"inputs": plain + more, "parameters": {"alpha": "0.1,0.3"}})
        group = [{**group[0], "data": ["nowhere", *group[0]["data"][1:]]}]
        server.tell("POST", infer, {"inputs": plain + group})
    server.end()


def settled(server, rows):
    """The monitor's report when it has so many rows."""
    deadline = time.monotonic() + LONGEST
    while time.monotonic() < deadline:
        status = json.loads(server.ask("GET", "/status")[1])
        monitor = status["models"][0].get("monitor", {})
        if monitor.get("rows", 0) >= rows:
            return status
        time.sleep(0.02)
    sys.exit("the monitor never saw all truths")


def feedback():
    name = name_of(MODELS[0])
    infer, told = f"/v2/models/{name}/infer", f"/v2/models/{name}/feedback"
    rows = table("test.csv")[:60]
    parts = columns(rows, "abcd")
    for arguments in ((), ("--adapt", "dtaci"), ("--adapt", "aci", "--step", "0.05", "--alpha", "0.2")):
        server = Server(*MODELS, "--state", "state" + "".join(arguments), *arguments)
        server.tell("POST", infer, {"id": "all", "inputs": parts})
        server.tell("POST", infer, {"id": "two", "inputs": parts, "parameters": {"alpha": "0.1,0.3"}})
        server.tell("POST", infer, {"id": "all", "inputs": parts})
        server.tell("POST", told, {"feedback": [
            {"id": "all", "row": i, "truth": float(row["y"])} for i, row in enumerate(rows)]})
        server.tell("POST", told, {"feedback": [
            {"id": "all", "truth": 1.0}, {"id": "nobody", "truth": 1.0}, {"id": "two", "row": 99, "truth": 1},
            {"id": "two", "row": 1, "truth": [1, 2]}]})
        server.tell("POST", told, {"feedback": [{"id": "two", "truth": "x"}]})
        status = settled(server, len(rows))["models"][0]
        for key in ("level", "version", "sha256"):
            print(f"{key}: {status.get(key)}")
        keys = ("rows", "coverage", "size", "adapted_coverage", "log10_exchangeability", "alarms")
        print("monitor:", json.dumps({key: masked(status["monitor"].get(key)) for key in keys}))
        server.tell("POST", infer, {"id": "after", "inputs": parts})
        server.end()


def errors():
    server = Server(*MODELS, "--max-rows", "70", "--max-body", "1MB")
    name = name_of(MODELS[0])
    infer = f"/v2/models/{name}/infer"
    parts = columns(table("test.csv")[:3], "abcd")
    many = columns(table("test.csv"), "abcd")
    hole = [{**parts[0], "data": [1.0, None, 2.0]}, *parts[1:]]
    for method, path, body in (
            ("GET", "/nothing", None), ("POST", "/v2/models/nobody/infer", {}), ("GET", infer, None),
            ("POST", "/v2", {}), ("POST", infer, "{"), ("POST", infer, {"inputs": []}),
            ("POST", infer, {"inputs": parts[1:]}), ("POST", infer, {"inputs": many}),
            ("POST", infer, {"inputs": hole}),
            ("POST", infer, {"inputs": [{**parts[0], "shape": [2]}, *parts[1:]]}),
            ("POST", infer, {"inputs": [{**parts[0], "data": ["x", "y", "z"], "datatype": "BYTES"},
                                        *parts[1:]]}),
            ("POST", infer, {"inputs": [{**parts[0], "name": "height"}, *parts[1:]]}),
            ("POST", infer, {"inputs": parts, "parameters": {"alpha": 7}}),
            ("POST", infer, {"inputs": parts, "parameters": {"alpha": "0.1,0.1"}}),
            ("POST", infer, {"inputs": parts, "outputs": [{"name": "z"}]}),
            ("POST", infer, {"inputs": parts, "outputs": [{"name": "lower"}]}),
            ("GET", f"/v2/models/{name}/versions/9", None),
            ("POST", f"/v2/models/{name}/feedback", {"feedback": []}), ("POST", infer, "x" * 1_100_000)):
        server.tell(method, path, body)
    server.end()


{"answers": answers, "groups": groups, "feedback": feedback, "errors": errors}[PART]()
