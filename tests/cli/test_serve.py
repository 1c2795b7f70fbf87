"""fcp serve over HTTP: the Open Inference Protocol, levels, columns, limits, reload, the end.

tritonclient (PyPI) is one of the clients where it is installed; otherwise that test is skipped."""
import csv
import gzip
import http.client
import http.server
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import unittest
import zlib

import program
from program import TARGET, read_csv


class Server:
    """fcp serve on a free port, with what it logs."""

    def __init__(self, case, *arguments, **options):
        self.process = subprocess.Popen(
            [program.PROGRAM, "serve", *map(str, arguments), "--port", "0", "--threads", "1"],
            cwd=case.folder, env=program.ENVIRONMENT, stderr=subprocess.PIPE, text=True,
            **options)
        case.addCleanup(self.kill)
        line = self.process.stderr.readline()
        self.first = json.loads(line) if line.startswith("{") else line
        self.port = self.first["port"] if isinstance(self.first, dict) else None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stderr.close()

    def event(self, name):
        """The next logged event of this name."""
        while True:
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError(f"no event {name}")
            event = json.loads(line)
            if event["event"] == name:
                return event

    def ask(self, method, path, body=None, headers=None):
        """Status, body and headers."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=program.LONGEST)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), dict(response.getheaders())
        finally:
            connection.close()

    def json(self, method, path, body=None, headers=None):
        status, text, _ = self.ask(method, path, body, headers)
        return status, json.loads(text)


class ServeCase(program.Case):
    def serve(self, *arguments, models=None, **options):
        server = Server(self, *(models or [self.made("calibrated.onnx")]), *arguments, **options)
        self.assertIsNotNone(server.port, server.first)
        return server

    def columns(self, count=None):
        """The demo's test rows as inputs by column."""
        header, rows = read_csv(self.made("test.csv"))
        rows = rows[:count]
        return [{"name": name, "shape": [len(rows)], "datatype": "FP64",
                 "data": [row[i] for row in rows]}
                for i, name in enumerate(header) if name != TARGET]

    def expected(self, *arguments):
        return self.predict(self.made("calibrated.onnx"), *arguments)


class PageBehindProxy:
    """The server's page under /some/where/, as a headless browser shows it after it has run a
    script there."""

    def __init__(self, case, server):
        self.browser = shutil.which("chromium") or shutil.which("google-chrome")
        if not self.browser:
            case.skipTest("no browser")
        self.case, self.script = case, ""
        outer = self

        class Proxy(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                size = int(self.headers.get("Content-Length", 0))
                kept = {name: self.headers[name] for name in ("Authorization", "Content-Type")
                        if name in self.headers}
                path = self.path.removeprefix("/some/where")
                status, body, _ = server.ask(self.command, path, self.rfile.read(size), kept)
                if path == "/":
                    body = body.replace(b"</body>", outer.script.encode() + b"</body>")
                self.send_response(404 if path == self.path else status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.proxy = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
        thread = threading.Thread(target=self.proxy.serve_forever)
        thread.start()
        case.addCleanup(self.proxy.server_close)
        case.addCleanup(thread.join)
        case.addCleanup(self.proxy.shutdown)

    def seen(self, script=""):
        """The page as text, once the script has run to its end."""
        self.script = ("<script>const until = async (done) => { while (!done()) await new Promise("
                       "(go) => setTimeout(go, 20)); }; (async () => {" + script + "})();</script>")
        address = f"http://127.0.0.1:{self.proxy.server_address[1]}/some/where/"
        done = subprocess.run(
            [self.browser, "--headless", "--no-sandbox", "--disable-gpu",
             "--virtual-time-budget=5000", "--enable-logging=stderr", "--dump-dom",
             "--user-data-dir=" + self.case.path("profile"), address],
            capture_output=True, text=True, timeout=program.LONGEST, check=False)
        text = re.sub("<script>.*?</script>", "", done.stdout, flags=re.DOTALL)
        self.case.assertNotIn("NaN", text)
        errors = [line for line in done.stderr.splitlines()
                  if "CONSOLE" in line and "401 (Unauthorized)" not in line]
        self.case.assertEqual(errors, [])
        return text


def single(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def outputs_of(answer):
    return {output["name"]: output["data"] for output in answer["outputs"]}


class Serve(ServeCase):
    def test_health_and_metadata(self):
        server = self.serve()
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/calibrated/ready",
                     "/v2/models/calibrated/versions/1/ready"):
            self.assertEqual(server.ask("GET", path)[0], 200, path)
        self.assertIn("binary_tensor_data", server.json("GET", "/v2")[1]["extensions"])
        status, facts = server.json("GET", "/v2/models/calibrated")
        self.assertEqual(status, 200)
        self.assertEqual(facts["versions"], ["1"])
        self.assertEqual([o["name"] for o in facts["outputs"]], ["prediction", "lower", "upper"])
        self.assertEqual(facts["parameters"]["score"], "nested")

    def test_columns_equal_predict_bit_by_bit(self):
        server = self.serve()
        for alpha in ("0.1", "0.05"):
            status, answer = server.json("POST", "/v2/models/calibrated/infer",
                                         {"inputs": self.columns(), "parameters": {"alpha": alpha}})
            self.assertEqual(status, 200, answer)
            found = outputs_of(answer)
            rows = list(zip(found["prediction"], found["lower"], found["upper"]))
            wanted = [tuple(map(single, row)) for row in self.expected("--alpha", alpha)]
            self.assertEqual([tuple(map(single, row)) for row in rows], wanted)

    def test_tls(self):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.path("key.pem"),
                        "-out", self.path("cert.pem")], check=True, capture_output=True)
        model = self.made("calibrated.onnx")
        self.assertEqual(self.run_program("serve", model, "--tls-cert", "cert.pem").returncode, 2)
        wrong = self.run_program("serve", model, "--tls-cert", "key.pem", "--tls-key", "key.pem")
        if "without TLS" in wrong.stderr:
            self.skipTest("built without libssl")
        self.assertEqual(wrong.returncode, 1)
        self.assertIn("key.pem: expected a certificate in PEM", wrong.stderr)
        server = self.serve("--tls-cert", "cert.pem", "--tls-key", "key.pem")
        trust = ssl.create_default_context(cafile=self.path("cert.pem"))
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=trust,
                                                 timeout=program.LONGEST)
        self.addCleanup(connection.close)
        connection.request("POST", "/v2/models/calibrated/infer",
                           json.dumps({"inputs": self.columns()}))
        response = connection.getresponse()
        self.assertEqual(response.status, 200)
        found = outputs_of(json.loads(response.read()))
        wanted = [tuple(map(single, row)) for row in self.expected()]
        self.assertEqual([tuple(map(single, row)) for row in
                          zip(found["prediction"], found["lower"], found["upper"])], wanted)

    def test_rate(self):
        server = self.serve("--rate", 0.001)
        self.assertEqual(server.ask("GET", "/v2")[0], 200)
        status, _, headers = server.ask("GET", "/v2")
        self.assertEqual((status, headers["Retry-After"]), (429, "1"))

    def test_several_levels(self):
        server = self.serve()
        _, answer = server.json("POST", "/v2/models/calibrated/infer",
                                {"inputs": self.columns(5), "parameters": {"alpha": "0.2,0.05"}})
        found = outputs_of(answer)
        self.assertEqual(list(found), ["prediction", "lower_0.2", "upper_0.2", "lower_0.05",
                                       "upper_0.05"])
        for wide, narrow in zip(found["lower_0.05"], found["lower_0.2"]):
            self.assertLessEqual(wide, narrow)
        self.assertEqual(answer["parameters"], {"level": "0.2,0.05"})
        for parameters, level in (({}, 0.1), ({"alpha": 0.2}, 0.2), ({"alpha": "0.3"}, 0.3)):
            answer = server.json("POST", "/v2/models/calibrated/infer",
                                 {"inputs": self.columns(1), "parameters": parameters})[1]
            self.assertEqual(answer["parameters"], {"level": level})

    def test_distributions_are_those_of_predict(self):
        self.calibrate("promise.onnx", "--score", "residual", "--side", "upper")
        server = self.serve(models=["promise.onnx"])
        asked = {"quantiles": "0.05,0.9", "above": 30, "between": "10:30"}
        status, answer = server.json("POST", "/v2/models/promise/infer",
                                     {"inputs": self.columns(5), "parameters": asked})
        self.assertEqual(status, 200, answer)
        found = outputs_of(answer)
        text = self.fcp("predict", "promise.onnx", "--data", self.made("test.csv"), "--quantiles",
                        "0.05,0.9", "--above", "30", "--between", "10:30")
        header, rows = program.parse_csv(text)
        for k, name in enumerate(header[3:], start=3):
            self.assertEqual([single(number) for number in found[name]],
                             [single(row[k]) for row in rows[:5]])
        for parameters, wanted in (({"above": "much"}, "above: found much, expected a number"),
                                   ({"probabilities": True}, "gives intervals")):
            status, answer = server.json("POST", "/v2/models/promise/infer",
                                         {"inputs": self.columns(1), "parameters": parameters})
            self.assertEqual(status, 400)
            self.assertIn(wanted, answer["error"])

    def test_large_requests_are_sliced(self):
        """Every row of a large request is answered as a small one answers it."""
        server = self.serve()
        some = self.columns(50)
        few = outputs_of(server.json("POST", "/v2/models/calibrated/infer", {"inputs": some})[1])
        many = [{**column, "shape": [10_000], "data": column["data"] * 200} for column in some]
        status, answer = server.json("POST", "/v2/models/calibrated/infer", {"inputs": many})
        self.assertEqual(status, 200, answer)
        for name, values in outputs_of(answer).items():
            self.assertEqual(values, few[name] * 200)

    def test_missing_cells_and_unknown_categories_are_counted(self):
        self.write("table.csv", "".join(["a,b,y\n"] + [
            f"{i % 7 if i % 5 else ''},{'xyz'[i % 3]},{i % 7 + i % 3}\n" for i in range(600)]))
        self.fcp("fit", "table.csv", "--target", "y", "--out", "fitted.onnx", "--epochs", 2, "--quiet")
        server = self.serve(models=["fitted.onnx"])
        status, answer = server.json("POST", "/v2/models/fitted/infer", {"inputs": [
            {"name": "a", "shape": [4], "datatype": "FP64", "data": [1, None, None, 2]},
            {"name": "b", "shape": [4], "datatype": "BYTES", "data": ["x", "new", "", "y"]}]})
        self.assertEqual(status, 200, answer)
        text = server.ask("GET", "/metrics")[1].decode()
        self.assertIn('fcp_cells_missing_total{model="fitted",column="a"} 2\n', text)
        self.assertIn('fcp_cells_missing_total{model="fitted",column="b"} 1\n', text)
        self.assertIn('fcp_categories_unknown_total{model="fitted",column="b"} 1\n', text)

    def test_tensors_in_binary(self):
        server = self.serve()
        facts = server.json("GET", "/v2/models/calibrated")[1]["inputs"][0]
        rows = self.features()
        numbers = [value for row in rows for value in row]
        if facts["shape"][1] != len(rows[0]):
            self.skipTest("the demo's columns are encoded")
        data = struct.pack(f"<{len(numbers)}f", *numbers)
        head = json.dumps({"inputs": [{"name": facts["name"], "shape": [len(rows), len(rows[0])],
                                       "datatype": "FP32",
                                       "parameters": {"binary_data_size": len(data)}}],
                           "parameters": {"binary_data_output": True}}).encode()
        status, body, headers = server.ask(
            "POST", "/v2/models/calibrated/infer", head + data,
            {"Inference-Header-Content-Length": str(len(head))})
        self.assertEqual(status, 200, body)
        size = int(headers["Inference-Header-Content-Length"])
        answer = json.loads(body[:size])
        found, at = {}, size
        for output in answer["outputs"]:
            length = output["parameters"]["binary_data_size"]
            found[output["name"]] = struct.unpack(f"<{length // 4}f", body[at:at + length])
            at += length
        self.assertEqual(at, len(body))
        wanted = [tuple(map(single, row)) for row in self.expected()]
        self.assertEqual(list(zip(found["prediction"], found["lower"], found["upper"])), wanted)

    def test_errors_are_json_with_the_right_status(self):
        server = self.serve("--max-body", "1MB", "--max-rows", 3)
        infer = "/v2/models/calibrated/infer"
        for method, path, body, status, message in (
                ("GET", "/nothing", None, 404, "nothing here"),
                ("GET", "/v2/models/nobody", None, 404, "no such model"),
                ("POST", "/v2/models/nobody/infer", "{}", 404, "no such model"),
                ("GET", "/v2/models/calibrated/versions/9", None, 404, "no such version"),
                ("GET", infer, None, 405, "expected POST"),
                ("POST", "/v2", "{}", 405, "expected GET, HEAD"),
                ("GET", infer + "/anything", None, 404, "nothing here"),
                ("POST", infer + "/anything", "{}", 404, "nothing here"),
                ("GET", "/v2/models/calibrated/nothing", None, 404, "nothing here"),
                ("POST", infer, "{", 400, "not a JSON object"),
                ("POST", infer, {"inputs": []}, 400, "no 'inputs'"),
                ("POST", infer, {"inputs": self.columns(4)}, 400, "at most 3"),
                ("POST", infer, {"inputs": self.columns(1), "parameters": {"alpha": 7}}, 400, "7"),
                ("POST", infer, {"inputs": self.columns(1), "outputs": [{"name": "z"}]}, 400,
                 "no output 'z'"),
                ("POST", infer, {"inputs": self.columns(1)[1:]}, 400, "no column '"),
                ("POST", infer, {"inputs": self.columns(1) + [
                    {"name": "typo", "shape": [1], "datatype": "FP64", "data": [1]}]}, 400,
                 "there is no column 'typo'; the columns are '"),
                ("POST", infer, {"inputs": [{"name": "typo", "shape": [1], "datatype": "BYTES",
                                             "data": ["a"]}]}, 400, "no column '"),
                ("POST", infer, {"inputs": self.columns(1), "parameters": {"alfa": 0.1}}, 400,
                 "the parameter 'alfa' is not known"),
                ("POST", infer, {"inputs": self.columns(1), "parameters": {"timeout": 1}}, 503,
                 ""),
                ("POST", infer, "x" * 2_000_000, 413, "at most"),
                ("POST", "/v2/models/calibrated/feedback", {"feedback": []}, 404, "has no state")):
            with self.subTest(path=path, message=message):
                found, answer = server.json(method, path, body)
                self.assertEqual(found, status, answer)
                self.assertIn(message, answer["error"])

    def test_http(self):
        """What clients and proxies of HTTP rely on: HEAD, Allow, Date, chunks, compressed bodies."""
        server = self.serve("--max-body", "1MB")
        infer = "/v2/models/calibrated/infer"
        status, body, headers = server.ask("HEAD", "/v2/health/ready")
        self.assertEqual((status, body, headers["Content-Length"]), (200, b"", "14"))
        self.assertIn("GMT", headers["Date"])
        self.assertEqual(server.ask("GET", infer)[2]["Allow"], "POST")
        self.assertEqual(server.ask("DELETE", "/v2")[2]["Allow"], "GET, HEAD")
        text = json.dumps({"inputs": self.columns(5)}).encode()
        wanted = server.json("POST", infer, text)
        self.assertEqual(wanted[0], 200)
        pieces = (text[at:at + 7] for at in range(0, len(text), 7))
        self.assertEqual(server.json("POST", infer, pieces), wanted)  # http.client sends chunks
        for coding, packed in (("gzip", gzip.compress(text)), ("deflate", zlib.compress(text))):
            header = {"Content-Encoding": coding}
            self.assertEqual(server.json("POST", infer, packed, header), wanted)
            status, answer = server.json("POST", infer, packed[:-9], header)
            self.assertEqual((status, answer["error"]), (400, f"the body is not whole {coding}"))
            large = (gzip if coding == "gzip" else zlib).compress(bytes(2**21))
            self.assertEqual(server.ask("POST", infer, large, header)[0], 413)

    def test_memory_runs_out_while_a_body_comes(self):
        """That client is answered 503, or cut off; it is logged, and the server goes on."""
        server = self.serve("--max-body", "400MB", "--request-seconds", 300)
        infer, body = "/v2/models/calibrated/infer", {"inputs": self.columns(2)}
        wanted = server.json("POST", infer, body)
        self.assertEqual(wanted[0], 200)
        with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
        most = now + 2**26
        resource.prlimit(server.process.pid, resource.RLIMIT_AS, (most, most))
        size = 300 * 2**20
        with socket.create_connection(("127.0.0.1", server.port), program.LONGEST) as client:
            client.sendall(b"POST " + infer.encode() + b" HTTP/1.1\r\nHost: x\r\n"
                           b"Content-Length: %d\r\n\r\n" % size)
            try:
                for _ in range(size // 2**20):
                    client.sendall(b"0" * 2**20)
                answer = client.recv(65536)
            except OSError:
                answer = None
        refused = server.event("refused")
        self.assertEqual((refused["status"], refused["why"]), (503, "out of memory"))
        self.assertTrue(answer is None or answer.startswith(b"HTTP/1.1 503 "), answer)
        self.assertEqual(server.json("POST", infer, body), wanted)

    def test_memory_is_given_back(self):
        """What large requests took is the system's again a moment later."""
        server = self.serve("--max-body", "64MB")

        def resident():
            with open(f"/proc/{server.process.pid}/statm", encoding="ascii") as file:
                return int(file.read().split()[1]) * resource.getpagesize()

        infer = "/v2/models/calibrated/infer"
        many = [{**column, "shape": [65_536], "data": column["data"] * 65_536}
                for column in self.columns(1)]
        self.assertEqual(server.ask("POST", infer, {"inputs": self.columns(2)})[0], 200)
        before, most = resident(), 0
        for body in (json.dumps({"inputs": many}), "[" + "0," * 31 * 2**20 + "0]"):
            status = server.ask("POST", infer, body)[0]
            most = max(most, resident())
            self.assertIn(status, (200, 400))
        until = time.monotonic() + 60
        while resident() > before + 2**25 and time.monotonic() < until:
            time.sleep(0.1)
        self.assertLess(resident(), before + 2**25, (before, most))

    def test_flags_are_those_of_predict(self):
        """The same rows as a file, by column, as texts: the same flags and numbers."""
        self.write("table.csv", "".join(["a,b,y\n"] + [
            f"{i % 7},{'xyz'[i % 3]},{i % 7 + i % 3 + i / 1000}\n" for i in range(600)]))
        self.fcp("fit", "table.csv", "--target", "y", "--out", "fitted.onnx", "--epochs", 2, "--quiet")
        rows = [("3", "x"), ("900", "new"), ("", "y"), ("-1e3", "z")]
        self.write("new.csv", "a,b\n" + "".join(f"{a},{b}\n" for a, b in rows))
        self.fcp("predict", "fitted.onnx", "--data", "new.csv", "--flags", "--out", "flags.csv")
        with open(self.path("flags.csv"), encoding="utf-8", newline="") as file:
            found = list(csv.DictReader(file))
        wanted = [row["flags"] for row in found]
        self.assertEqual(wanted, ["", "range:a|unseen:b", "missing:a", "range:a"])
        server = self.serve(models=["fitted.onnx"])
        infer = "/v2/models/fitted/infer"
        texts = {"name": "b", "shape": [4], "datatype": "BYTES", "data": [b for _, b in rows]}
        for kind, cells in (("FP64", [float(a) if a else None for a, _ in rows]),
                            ("BYTES", [a for a, _ in rows])):
            inputs = [{"name": "a", "shape": [4], "datatype": kind, "data": cells}, texts]
            status, answer = server.json("POST", infer, {"inputs": inputs,
                                                         "parameters": {"flags": True}})
            self.assertEqual(status, 200, answer)
            outputs = outputs_of(answer)
            self.assertEqual(outputs["flags"], wanted)
            self.assertEqual([single(float(row["lower"])) for row in found],
                             list(map(single, outputs["lower"])))
            self.assertNotIn("flags", outputs_of(server.json("POST", infer, {"inputs": inputs})[1]))
        size = server.json("GET", "/v2/models/fitted")[1]["inputs"][0]
        numbers = {"name": size["name"], "shape": [1, size["shape"][1]], "datatype": "FP64",
                   "data": [0] * size["shape"][1]}
        status, answer = server.json("POST", infer, {"inputs": [numbers],
                                                     "parameters": {"flags": True}})
        self.assertEqual(status, 400)
        self.assertIn("the parameter 'flags' takes rows by column", answer["error"])

    def test_pages_of_other_sites_cannot_send(self):
        server = self.serve()
        infer, body = "/v2/models/calibrated/infer", {"inputs": self.columns(1)}
        for headers, status in (({"Content-Type": "text/plain;charset=UTF-8"}, 415),
                                ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
                                ({"Content-Type": "application/x-www-form-urlencoded"}, 200),
                                ({"Sec-Fetch-Site": "cross-site"}, 403),
                                ({"Sec-Fetch-Site": "same-origin"}, 200)):
            self.assertEqual(server.ask("POST", infer, body, headers)[0], status, headers)
        self.assertEqual(server.ask("GET", "/v2", headers={"Content-Type": "text/plain"})[0], 200)

    def test_limits_are_checked(self):
        for option, value in (("--max-rows", 0), ("--max-body", 0), ("--max-body", "4GB"),
                              ("--max-connections", 0), ("--max-queue", 0), ("--timeout", 0),
                              ("--idle-seconds", -5), ("--request-seconds", 0), ("--rate", -1),
                              ("--reload-seconds", -1), ("--keep", 0), ("--keep-truths", 0)):
            done = self.run_program("serve", self.made("calibrated.onnx"), option, value, "--port", 0)
            self.assertEqual(done.returncode, 2, option)
            self.assertIn(option, done.stderr)

    def test_token(self):
        self.write("token", "secret\n")
        server = self.serve("--token-file", "token")
        self.assertEqual(server.ask("GET", "/v2/health/live")[0], 200)
        self.assertEqual(server.ask("GET", "/v2")[0], 401)
        self.assertEqual(server.ask("GET", "/v2", headers={"Authorization": "Bearer secreT"})[0], 401)
        self.assertEqual(server.ask("GET", "/v2", headers={"Authorization": "Bearer secret"})[0], 200)

    def test_logs(self):
        """One line of JSON per request, with what is needed to find it elsewhere."""
        server = self.serve("--log-requests")
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        body = json.dumps({"id": "order", "inputs": self.columns(3)})
        status, answer, _ = server.ask("POST", "/v2/models/calibrated/infer", body,
                                       {"traceparent": trace})
        self.assertEqual(status, 200)
        line = server.event("request")
        self.assertEqual({name: line[name] for name in (
            "severity", "method", "path", "model", "id", "client", "traceparent", "status", "rows",
            "bytes", "answer_bytes")}, {
                "severity": "INFO", "method": "POST", "path": "/v2/models/calibrated/infer",
                "model": "calibrated", "id": "order", "client": "127.0.0.1", "traceparent": trace,
                "status": 200, "rows": 3, "bytes": len(body), "answer_bytes": len(answer)})
        self.assertLess(abs(line["time"] - time.time()), 600)
        self.assertEqual(server.ask("GET", "/nothing", headers={"traceparent": "x" * 55})[0], 404)
        line = server.event("request")
        self.assertEqual(line["severity"], "WARNING")
        self.assertNotIn("traceparent", line)

    def test_what_is_no_request_is_counted_and_logged(self):
        """All are counted; of many of a kind some are logged, which say how many were not."""
        server = self.serve()
        count = 200
        for _ in range(count):
            with socket.create_connection(("127.0.0.1", server.port), program.LONGEST) as client:
                client.sendall(b"nonsense\r\n\r\n")
                self.assertTrue(client.recv(64).startswith(b"HTTP/1.1 400 "))
        text = server.ask("GET", "/metrics")[1].decode()
        self.assertIn(f'fcp_http_refused_total{{status="400"}} {count}\n', text)
        server.process.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in server.process.stderr]
        refused = [line for line in lines if line["event"] == "refused"]
        self.assertGreater(len(refused), 5)
        self.assertEqual(refused[0]["client"], "127.0.0.1")
        self.assertEqual((refused[0]["severity"], refused[0]["status"]), ("WARNING", 400))
        self.assertLessEqual(len(refused) + sum(line.get("dropped", 0) for line in refused), count)
        self.assertEqual(lines[-1]["event"], "ended")

    def test_a_log_that_nobody_reads(self):
        """Its reader goes away; the server does not."""
        server = self.serve("--log-requests")
        server.process.stderr.close()
        for _ in range(3):
            self.assertEqual(server.json("POST", "/v2/models/calibrated/infer",
                                         {"inputs": self.columns(2)})[0], 200)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(program.LONGEST), 0)

    def test_sighup_reads_models_token_and_certificate(self):
        if shutil.which("openssl") is None:
            self.skipTest("openssl is not installed")

        def certificate(name):
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                            "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj",
                            "/CN=" + name, "-keyout", "key.pem", "-out", "cert.pem"],
                           cwd=self.folder, check=True, capture_output=True)

        def name_now():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            with socket.create_connection(("127.0.0.1", server.port), program.LONGEST) as plain:
                with context.wrap_socket(plain) as client:
                    found = client.getpeercert(binary_form=True)
            return next(name for name in ("first", "second") if name.encode() in found)

        def status(token):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            client = http.client.HTTPSConnection("127.0.0.1", server.port, context=context,
                                                 timeout=program.LONGEST)
            try:
                client.request("GET", "/v2", headers={"Authorization": "Bearer " + token})
                return client.getresponse().status
            finally:
                client.close()

        certificate("first")
        wrong = self.run_program("serve", self.made("calibrated.onnx"), "--tls-cert", "cert.pem",
                                 "--tls-key", "no.pem")
        if "without TLS" in wrong.stderr:
            self.skipTest("built without TLS")
        self.write("token", "one\n")
        shutil.copy(self.made("calibrated.onnx"), self.path("live.onnx"))
        server = self.serve("--tls-cert", "cert.pem", "--tls-key", "key.pem", "--token-file", "token",
                            "--reload-seconds", "0", models=["live.onnx"])
        self.assertEqual(server.event("loaded")["version"], "1")
        self.assertEqual((name_now(), status("one"), status("two")), ("first", 200, 401))
        certificate("second")
        self.write("token", "two\n")
        self.fcp("update", "live.onnx", "--data", self.made("test.csv"), "--target", TARGET,
                 "--out", "next.onnx")
        os.replace(self.path("next.onnx"), self.path("live.onnx"))
        self.assertEqual(name_now(), "first")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual(server.event("loaded")["version"], "2")
        self.assertEqual((name_now(), status("one"), status("two")), ("second", 401, 200))
        self.write("token", "")
        self.write("cert.pem", "nothing")
        server.process.send_signal(signal.SIGHUP)
        self.assertEqual({server.event("not loaded")["what"] for _ in range(2)},
                         {"certificate", "token"})
        self.assertEqual((name_now(), status("two")), ("second", 200))

    def test_several_models(self):
        self.calibrate("plain.onnx", "--score", "residual")
        server = self.serve(models=["plain.onnx", "best=" + self.made("calibrated.onnx")])
        self.assertEqual(server.json("GET", "/v2")[1]["models"], ["best", "plain"])
        for name, score in (("best", "nested"), ("plain", "residual")):
            self.assertEqual(server.json("GET", f"/v2/models/{name}")[1]["parameters"]["score"],
                             score)

    def test_metrics_and_page(self):
        server = self.serve()
        server.json("POST", "/v2/models/calibrated/infer", {"inputs": self.columns(5)})
        text = server.ask("GET", "/metrics")[1].decode()
        self.assertIn('fcp_requests_total{model="calibrated",what="infer",status="200"} 1', text)
        self.assertIn('fcp_rows_total{model="calibrated"} 5', text)
        page = server.ask("GET", "/")[1].decode()
        self.assertNotIn("http://", page.replace("http://www.w3.org/2000/svg", ""))
        self.assertIn("<title>fcp serve</title>", page)
        self.assertEqual(server.json("GET", "/status")[1]["models"][0]["name"], "calibrated")

    def test_page_behind_a_prefix_with_a_token(self):
        """In a browser, behind a proxy: it asks for the token, shows the model and answers a row."""
        self.write("token", "secret\n")
        server = self.serve("--token-file", "token")
        self.assertEqual(server.ask("GET", "/")[0], 200)
        self.assertEqual(server.ask("GET", "/status")[0], 401)
        page = PageBehindProxy(self, server)
        text = page.seen("""
            await until(() => !byId("sign-in").hidden);
            document.title = byId("note").textContent;
            byId("token").value = "secret";
            byId("sign-in").requestSubmit();
            await until(() => document.querySelector("#models input"));
            for (const one of document.querySelectorAll("#models input")) one.value = "3";
            document.querySelector("#models form").requestSubmit();
            const answer = document.querySelector("#models pre");
            await until(() => answer.textContent);""")
        for part in ("<title>The server asks for a token.</title>", "calibrated, version 1",
                     "Try a row", "prediction: ", "upper: "):
            self.assertIn(part, text)

    def test_a_new_version_takes_over_without_a_lost_request(self):
        shutil.copy(self.made("calibrated.onnx"), self.path("live.onnx"))
        server = self.serve("--reload-seconds", "0.1", models=["live.onnx"])
        self.fcp("update", "live.onnx", "--data", self.made("test.csv"), "--target", TARGET,
                 "--out", "next.onnx")
        body = {"inputs": self.columns(2)}
        answers, stop = [[] for _ in range(4)], threading.Event()

        def client(found):
            while not stop.is_set():
                status, answer = server.json("POST", "/v2/models/live/infer", body)
                found.append((status, answer.get("model_version")))

        def wait_for(version):
            until = time.monotonic() + 60
            while time.monotonic() < until and not all(
                    found and found[-1] == (200, version) for found in answers):
                time.sleep(0.01)

        threads = [threading.Thread(target=client, args=(found,)) for found in answers]
        for thread in threads:
            thread.start()
        wait_for("1")
        os.replace(self.path("next.onnx"), self.path("live.onnx"))
        wait_for("2")
        stop.set()
        for thread in threads:
            thread.join()
        for found in answers:
            self.assertEqual(found, sorted(found))  # all 200, version 1 and then version 2
            self.assertEqual((found[0], found[-1]), ((200, "1"), (200, "2")))
        self.assertEqual(server.json("GET", "/v2/models/live")[1]["versions"], ["1", "2"])
        self.assertEqual(server.ask("GET", "/v2/models/live/versions/1/ready")[0], 200)
        for version, task in (("1", "regression"), ("2", "regression")):
            loaded = server.event("loaded")
            self.assertEqual((loaded["version"], loaded["task"]), (version, task))
            self.assertEqual(len(loaded["sha256"]), 64)
        shutil.copy(self.made("calibrated.onnx"), self.path("before.onnx"))
        os.replace(self.path("before.onnx"), self.path("live.onnx"))
        self.assertEqual(server.event("loaded")["version"], "1")
        self.assertEqual(server.json("POST", "/v2/models/live/infer", body)[1]["model_version"], "1")
        self.write("live.onnx", "not a network")
        self.assertIn("error", server.event("not loaded"))
        self.assertEqual(server.json("POST", "/v2/models/live/infer",
                                     {"inputs": self.columns(2)})[0], 200)

    def test_sigterm_drains(self):
        """A request of which half has come is heard out and answered; new ones are not."""
        server = self.serve()
        body = json.dumps({"inputs": self.columns(5)}).encode()
        with socket.create_connection(("127.0.0.1", server.port), program.LONGEST) as client:
            client.sendall(b"POST /v2/models/calibrated/infer HTTP/1.1\r\nHost: x\r\n"
                           b"Content-Length: %d\r\n\r\n" % len(body) + body[:100])
            server.process.send_signal(signal.SIGTERM)
            server.event("draining")
            client.sendall(body[100:])
            answer = b"".join(iter(lambda: client.recv(65536), b""))
        head, _, text = answer.partition(b"\r\n\r\n")
        self.assertTrue(head.startswith(b"HTTP/1.1 200 "), head)
        self.assertIn(b"connection: close", head.lower())
        self.assertEqual(len(outputs_of(json.loads(text))["lower"]), 5)
        server.event("ended")
        self.assertEqual(server.process.wait(program.LONGEST), 0)
        with self.assertRaises(OSError):
            server.ask("GET", "/v2")

    def test_what_cannot_be_served_is_said_at_once(self):
        self.write("bad.onnx", "nothing")
        for arguments, message in ((["bad.onnx"], "bad.onnx"), ([self.made("model.onnx")], "calibrate"),
                                   ([self.made("calibrated.onnx"), "--host", "999.1.1.1"], "listen"),
                                   ([self.made("calibrated.onnx")] * 2, "another file")):
            done = self.run_program("serve", *arguments, "--port", 0)
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)

    def test_tritonclient(self):
        try:
            import numpy
            import tritonclient.http as triton
        except ImportError:
            self.skipTest("tritonclient[http] is not installed")
        server = self.serve()
        client = triton.InferenceServerClient(f"127.0.0.1:{server.port}")
        self.assertTrue(client.is_server_live() and client.is_server_ready())
        self.assertTrue(client.is_model_ready("calibrated"))
        facts = client.get_model_metadata("calibrated")["inputs"][0]
        x = numpy.array(self.features(), dtype=numpy.float32)
        if facts["shape"][1] != x.shape[1]:
            self.skipTest("the demo's columns are encoded")
        wanted = numpy.array(self.expected(), dtype=numpy.float32)
        for binary, packed in ((False, None), (True, None), (True, "gzip"), (False, "deflate")):
            tensor = triton.InferInput(facts["name"], list(x.shape), "FP32")
            tensor.set_data_from_numpy(x, binary_data=binary)
            outputs = [triton.InferRequestedOutput(name, binary_data=binary)
                       for name in ("prediction", "lower", "upper")]
            result = client.infer("calibrated", [tensor], outputs=outputs, timeout=60_000_000,
                                  request_compression_algorithm=packed)
            for i, name in enumerate(("prediction", "lower", "upper")):
                found = result.as_numpy(name).astype(numpy.float32)[:, 0]
                self.assertTrue((found == wanted[:, i]).all(), name)


if __name__ == "__main__":
    program.main()
