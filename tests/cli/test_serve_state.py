"""fcp serve --state: feedback, duplicates, alarms, and that what was acknowledged survives kill -9."""
import csv
import http.client
import itertools
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import threading
import time

import program
from program import TARGET
from test_serve import PageBehindProxy, ServeCase


KILLS = int(os.environ.get("FCP_KILLS", "6"))


class Clients:
    """Predict and tell the truth of it, one after the other, until the server goes or end() is
    called. `wrong`: answers that were none."""

    COUNT = 3

    def __init__(self, case, server, first=0):
        self.case, self.server = case, server
        self.accepted, self.wrong = set(), []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(first + 100_000 * k,))
                        for k in range(self.COUNT)]
        for thread in self.threads:
            thread.start()
        case.addCleanup(self.end)

    def run(self, first):
        try:
            for i in itertools.count(first):
                if self.stop.is_set():
                    return
                status, answer = self.case.infer(self.server, [i % 20], f"r{i}")
                if status != 200:
                    self.wrong.append(answer)
                    continue
                told = self.case.tell(self.server, [{"id": f"r{i}", "truth": 1.0}])[1]
                if told.get("accepted") == 1:
                    self.accepted.add(f"r{i}")
                else:
                    self.wrong.append(told)
        except (OSError, http.client.HTTPException, ValueError):
            pass  # the server has gone

    def wait_for(self, more):
        """Until so many more truths were accepted."""
        enough, deadline = len(self.accepted) + more, time.monotonic() + 60
        while len(self.accepted) < enough and time.monotonic() < deadline:
            time.sleep(0.002)

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join()


class State(ServeCase):
    def setUp(self):
        super().setUp()
        done = self.run_program("serve", self.made("calibrated.onnx"), "--state", "no/such/folder",
                                "--port", 0)
        if "without SQLite" in done.stderr:
            self.skipTest("built without SQLite")
        self.assertEqual(done.returncode, 1)

    def infer(self, server, rows, request_id=None):
        body = {"inputs": [{**column, "shape": [len(rows)],
                            "data": [column["data"][i] for i in rows]}
                           for column in self.columns()]}
        if request_id:
            body["id"] = request_id
        return server.json("POST", "/v2/models/calibrated/infer", body)

    def tell(self, server, truths):
        return server.json("POST", "/v2/models/calibrated/feedback", {"feedback": truths})

    def monitor(self, server, rows):
        """The monitor's report once it has that many rows; reports are made twice a second."""
        deadline = time.monotonic() + 60
        while True:
            found = server.json("GET", "/status")[1]["models"][0]["monitor"]
            if found["rows"] >= rows or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def test_feedback(self):
        truth = self.truth()
        server = self.serve("--state", "state")
        status, answer = self.infer(server, [0, 1])
        self.assertEqual(status, 200, answer)
        made = answer["id"]
        status, told = self.tell(server, [
            {"id": made, "row": 1, "truth": truth[1]}, {"id": made, "truth": [truth[0]]},
            {"id": made, "truth": truth[0]}, {"id": "nobody", "truth": 1},
            {"id": made, "row": 2, "truth": 1}])
        self.assertEqual(status, 200, told)
        self.assertEqual([one["status"] for one in told["results"]],
                         ["accepted", "accepted", "duplicate", "unknown", "unknown"])
        self.assertEqual(told["accepted"], 2)
        self.assertEqual(self.infer(server, [3], "mine")[0], 200)
        self.assertEqual(self.infer(server, [4], "mine")[0], 409)
        self.assertEqual(self.tell(server, [{"id": "mine", "truth": "x"}])[0], 400)
        self.assertEqual(self.tell(server, [{"id": "mine", "truth": [1, 2]}])[1]["results"][0]
                         ["status"], "wrong")
        found = self.monitor(server, 2)
        self.assertEqual(found["rows"], 2)
        text = server.ask("GET", "/metrics")[1].decode()
        self.assertIn('fcp_coverage{model="calibrated"}', text)
        other = self.run_program("serve", self.made("calibrated.onnx"), "--state", "state", "--port",
                                 0)
        self.assertIn("another server is using it", other.stderr)

    def metrics(self, server):
        """Value by name and labels; promtool, where it is installed, has nothing to say of it."""
        text = server.ask("GET", "/metrics")[1].decode()
        if shutil.which("promtool"):
            done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                                  capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))}

    def test_metrics(self):
        """Nothing is said of truths before there is one; then what they told is there."""
        truth = self.truth()
        server = self.serve("--state", "state")
        self.assertEqual(self.infer(server, range(3), "a")[0], 200)
        before = self.metrics(server)
        for name in ("fcp_coverage", "fcp_coverage_low", "fcp_mean_size", "fcp_alarms",
                     "fcp_exchangeability_log10", "fcp_drift_log10"):
            self.assertNotIn(name + '{model="calibrated"}', before)
        self.tell(server, [{"id": "a", "row": i, "truth": truth[i]} for i in range(2)] +
                  [{"id": "a", "row": 2, "truth": 1e9}])
        self.monitor(server, 3)
        after = self.metrics(server)
        self.assertAlmostEqual(after['fcp_coverage{model="calibrated"}'], 2 / 3, places=6)
        self.assertGreater(after['fcp_mean_size{model="calibrated"}'], 0)
        self.assertEqual(after["fcp_truths_stored"], 3)
        self.assertEqual(after["fcp_waiting_predictions"], 0)
        self.assertEqual(after['fcp_queue_rows{model="calibrated",version="1"}'], 0)
        sha256 = server.json("GET", "/v2/models/calibrated")[1]["parameters"]["sha256"]
        info = [name for name in after if name.startswith("fcp_model_info{")]
        self.assertEqual(info, [f'fcp_model_info{{model="calibrated",version="1",sha256="{sha256}",'
                                'task="regression",score="nested"}'])
        self.assertEqual(len([name for name in after if name.startswith("fcp_build_info{")]), 1)
        self.assertEqual(after['fcp_truths_total{model="calibrated",covered="true"}'], 2)
        self.assertEqual(after['fcp_truths_total{model="calibrated",covered="false"}'], 1)
        self.assertEqual(after['fcp_answers_unbounded_total{model="calibrated"}'], 0)
        self.assertEqual(after['fcp_batch_rows_sum{model="calibrated"}'], 3)
        self.assertEqual((after["fcp_state_up"], after["fcp_ready"]), (1, 1))
        self.assertGreater(after["process_resident_memory_bytes"], 1e7)
        self.assertGreater(after["process_open_fds"], 3)
        self.assertLess(abs(after["process_start_time_seconds"] - time.time()), 3600)

    def test_a_retry_gets_the_same_answer(self):
        """Also after a restart with another file, and when the truth is known; and it waits for its
        truth once."""
        shutil.copy(self.made("calibrated.onnx"), self.path("live.onnx"))

        def ask(rows=(0, 1), **more):
            inputs = [{**column, "shape": [len(rows)], "data": [column["data"][i] for i in rows]}
                      for column in self.columns()]
            return server.json("POST", "/v2/models/live/infer",
                               {"id": "order", "inputs": inputs, **more})

        def tell(row):
            return server.json("POST", "/v2/models/live/feedback",
                               {"feedback": [{"id": "order", "row": row, "truth": 1.0}]})[1]

        two = {"parameters": {"alpha": "0.2,0.05"}}
        server = self.serve("--state", "state", models=["live.onnx"])
        first = ask(**two)
        self.assertEqual(first[0], 200)
        self.assertEqual(ask(**two), first)
        self.assertEqual(tell(0)["accepted"], 1)
        self.assertEqual(ask(**two), first)
        deadline = time.monotonic() + 60  # it is measured twice a second
        while self.metrics(server)["fcp_waiting_predictions"] != 1:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        chosen = ask(**two, outputs=[{"name": "upper_0.05"}])[1]
        self.assertEqual(chosen["outputs"], first[1]["outputs"][-1:])
        for other in (ask(), ask((1, 0), **two), ask((0,), **two),
                      ask(parameters={"alpha": "0.2,0.1"})):
            self.assertEqual(other[0], 409, other)
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        self.fcp("update", "live.onnx", "--data", self.made("test.csv"), "--target", TARGET,
                 "--out", "next.onnx")
        os.replace(self.path("next.onnx"), self.path("live.onnx"))
        server = self.serve("--state", "state", models=["live.onnx"])
        self.assertEqual(server.json("GET", "/v2/models/live")[1]["parameters"]["version"], "2")
        self.assertEqual(ask(**two), first)
        told = tell(1)  # of a version that is served no more
        self.assertEqual(told["accepted"], 1)
        self.assertEqual(set(told["results"][0]), {"id", "row", "status", "covered"})
        self.assertEqual(tell(0)["results"][0]["status"], "duplicate")

    def test_live_equals_replay(self):
        """The same truths in the same order: the coverage that fcp monitor counts."""
        count = 80
        truth = self.truth()[:count]
        with open(self.made("test.csv"), encoding="utf-8") as file:
            self.write("log.csv", "".join(file.readlines()[:count + 1]))
        server = self.serve("--state", "state")
        self.assertEqual(self.infer(server, range(count), "all")[0], 200)
        told = self.tell(server, [{"id": "all", "row": i, "truth": y}
                                  for i, y in enumerate(truth)])[1]
        self.assertEqual(told["accepted"], count)
        live = self.monitor(server, count)
        done = self.run_program("monitor", self.made("calibrated.onnx"), "--data", "log.csv",
                                "--target", TARGET, "--json")
        replayed = json.loads(done.stdout)
        self.assertEqual(live["coverage"], replayed["coverage"])
        self.assertAlmostEqual(live["log10_exchangeability"], replayed["log10_exchangeability"],
                               places=6)

    def test_adapting(self):
        """Requests that name no level are answered at one that follows the truths, survives kill -9
        and can be exported; those that name one get it."""
        count = 60
        truth = self.truth()[:count]
        model = self.made("calibrated.onnx")
        self.assertEqual(self.run_program("serve", model, "--adapt", "dtaci").returncode, 2)
        server = self.serve("--state", "state", "--adapt", "dtaci")
        answer = self.infer(server, range(count), "all")[1]
        self.assertEqual(answer["parameters"], {"level": 0.1})
        told = self.tell(server, [{"id": "all", "row": i, "truth": y}
                                  for i, y in enumerate(truth)])[1]
        self.assertEqual(told["accepted"], count)
        level = server.json("GET", "/status")[1]["models"][0]["level"]
        self.assertNotEqual(level, 0.1)
        self.assertEqual(self.infer(server, [0])[1]["parameters"], {"level": level})
        named = server.json("POST", "/v2/models/calibrated/infer",
                            {"inputs": self.columns(2), "parameters": {"alpha": 0.1}})[1]
        self.assertEqual(named["parameters"], {"level": 0.1})
        self.assertIn("fcp_level{", server.ask("GET", "/metrics")[1].decode())
        found = self.monitor(server, count)
        self.assertEqual(found["adapted_coverage"], found["coverage"])  # all were answered at 0.1
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        server = self.serve("--state", "state", "--adapt", "dtaci")
        self.assertEqual(self.infer(server, [0])[1]["parameters"], {"level": level})
        exported = self.run_program("export", model, "--state", "state", "--out", "adapted.onnx",
                                    "--json")
        self.assertEqual(exported.returncode, 0, exported.stderr)
        plain = self.run_program("export", model, "--alpha", repr(level), "--out", "plain.onnx",
                                 "--json")
        self.assertEqual(list(json.loads(exported.stdout)["radius"].values()),
                         list(json.loads(plain.stdout)["radius"].values()))
        missing = self.run_program("export", model, "--state", "state", "--alpha", 0.2, "--out",
                                   "none.onnx")
        self.assertEqual(missing.returncode, 1)
        self.assertIn("no adapted level of this file for 0.2", missing.stderr)

    def test_the_loop_is_closed(self):
        """update, monitor and evaluate take what the server stored as they take a file of the same
        rows, and refuse rows that were used; export writes it as CSV."""
        count = 120
        truth = self.truth()[:count]
        with open(self.made("test.csv"), encoding="utf-8") as file:
            self.write("log.csv", "".join(file.readlines()[:count + 1]))
        model = self.made("calibrated.onnx")
        server = self.serve("--state", "state")
        self.assertEqual(self.infer(server, range(count), "all")[0], 200)
        self.tell(server, [{"id": "all", "row": i, "truth": y} for i, y in enumerate(truth)])
        by_file = ("--data", "log.csv", "--target", TARGET)
        by_state = ("--state", "state")

        def run(verb, *arguments, file=model):
            done = self.run_program(verb, file, *arguments, "--json")
            self.assertIn(done.returncode, (0, 3), done.stderr)
            return json.loads(done.stdout)

        stored, plain = run("evaluate", *by_state), run("evaluate", *by_file)
        for name in ("rows", "covered", "coverage", "length", "interval_score"):
            self.assertEqual(stored[name], plain[name], name)
        coverage = stored["coverage"]
        stored, plain = run("monitor", *by_state), run("monitor", *by_file)
        for name in ("rows", "coverage", "log10_exchangeability"):
            self.assertEqual(stored[name], plain[name], name)
        stored = run("update", *by_state, "--out", "next.onnx")
        plain = run("update", *by_file, "--out", "plain.onnx")
        self.assertEqual((stored["rows"], stored["radius"]), (plain["rows"], plain["radius"]))
        self.assertEqual(stored["version"], 2)
        recent = run("update", *by_state, "--since", "2020-01-01", "--out", "recent.onnx")
        self.assertEqual(recent["rows"], count)
        done = self.run_program("update", model, *by_state, "--since", "2999-01-01", "--out",
                                "none.onnx")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no row is at or after 2999-01-01", done.stderr)
        again = self.run_program("update", "next.onnx", *by_file, "--out", "third.onnx")
        self.assertEqual(again.returncode, 1)
        self.assertIn("calibrated on these rows already", again.stderr)
        other = self.run_program("update", "next.onnx", *by_state, "--out", "third.onnx")
        self.assertEqual(other.returncode, 1)
        self.assertIn("state: has no truths of predictions of next.onnx", other.stderr)
        for wrong in ((), (*by_state, *by_file), (*by_state, "--target", TARGET)):
            self.assertEqual(self.run_program("update", model, *wrong, "--out", "x").returncode, 2)
        told = json.loads(self.fcp("state", "export", "state", "--out", "truths.csv", "--json"))
        self.assertEqual(told["rows"], count)
        with open(self.path("truths.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([float(row["truth"]) for row in rows], truth)
        self.assertEqual({row["model"] for row in rows}, {"calibrated"})
        self.assertEqual([int(row["row"]) for row in rows], list(range(count)))
        self.assertAlmostEqual(sum(int(row["covered"]) for row in rows) / count,
                               coverage, places=9)
        done = self.run_program("state", "export", "state", "--model", "nobody", "--out", "x.csv")
        self.assertEqual((done.returncode, os.path.exists(self.path("x.csv"))), (1, False))

    def test_an_alarm_is_logged(self):
        server = self.serve("--state", "state")
        self.infer(server, range(100), "far")
        self.tell(server, [{"id": "far", "row": i, "truth": 1e6} for i in range(100)])
        self.assertIn("alarm: calibrated: ", server.event("monitor")["what"])
        self.assertGreater(len(self.monitor(server, 100)["alarms"]), 0)

    def test_acknowledged_feedback_survives_kill_9(self):
        """Clients report truths while the server is killed at random moments. Whatever was answered
        "accepted" is a duplicate afterwards, and nothing is counted twice."""
        rng = random.Random(1)
        accepted = set()
        for kill in range(KILLS):
            server = self.serve("--state", "state")
            clients = Clients(self, server, 1_000_000 * kill)
            clients.wait_for(rng.randrange(5, 60))
            time.sleep(rng.uniform(0, 0.02))
            server.process.send_signal(signal.SIGKILL)
            clients.end()
            accepted |= clients.accepted
            server.kill()
        self.assertGreater(len(accepted), 10)
        # A truth that was kept but whose answer was lost is the only excess: one per client and kill.
        self.check_kept(self.serve("--state", "state"), accepted, Clients.COUNT * KILLS)

    def check_kept(self, server, accepted, more=0):
        """All that was accepted is there, counted once, and at most so many others."""
        names, told = sorted(accepted), []
        for first in range(0, len(names), 1000):
            told += self.tell(server, [{"id": name, "truth": 1.0}
                                       for name in names[first:first + 1000]])[1]["results"]
        self.assertEqual({one["status"] for one in told}, {"duplicate"})
        rows = self.monitor(server, len(accepted))["rows"]
        self.assertGreaterEqual(rows, len(accepted))
        self.assertLessEqual(rows, len(accepted) + more)

    def test_sigterm_under_load(self):
        """Nobody is answered an error, nor half; the exit code is 0 and all that was accepted is
        there."""
        server = self.serve("--state", "state")
        clients = Clients(self, server)
        clients.wait_for(50)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(program.LONGEST), 0)
        clients.end()
        self.assertEqual(clients.wrong, [])
        self.check_kept(self.serve("--state", "state"), clients.accepted, Clients.COUNT)

    def test_twelve_reloads_under_load(self):
        """Two files take turns while clients predict and tell: every request is answered, every truth
        accepted, and none is lost."""
        shutil.copy(self.made("calibrated.onnx"), self.path("calibrated.onnx"))
        server = self.serve("--state", "state", "--reload-seconds", "0.05",
                            models=["calibrated.onnx"])
        self.assertEqual(server.event("loaded")["version"], "1")
        self.fcp("update", "calibrated.onnx", "--data", self.made("test.csv"), "--target", TARGET,
                 "--out", "next.onnx")
        clients = Clients(self, server)
        for turn in range(12):
            clients.wait_for(5)
            file = self.path("next.onnx") if turn % 2 == 0 else self.made("calibrated.onnx")
            shutil.copy(file, self.path("moved.onnx"))
            os.replace(self.path("moved.onnx"), self.path("calibrated.onnx"))
            self.assertEqual(server.event("loaded")["version"], "21"[turn % 2])
        clients.wait_for(5)
        clients.end()
        self.assertEqual(clients.wrong, [])
        told = [{"id": name, "truth": 1.0} for name in sorted(clients.accepted)]
        self.assertEqual({one["status"] for one in self.tell(server, told)[1]["results"]},
                         {"duplicate"})
        until = time.monotonic() + 60  # it is measured twice a second
        while self.metrics(server)["fcp_truths_stored"] != len(told):
            self.assertLess(time.monotonic(), until)
            time.sleep(0.05)

    def check_full(self, server, fill, free):
        """503 and nothing kept of it while there is no room; what was accepted before is there, and
        when there is room again the server goes on. Bodies name no file, the log does; the server
        is ready again by itself."""
        logged = []
        threading.Thread(target=lambda: logged.extend(server.process.stderr), daemon=True).start()
        accepted, refused, answers = [], [], []

        def go_on(enough):
            for i in range(len(accepted) + len(refused), 20_000):
                name = f"r{i}"
                status, answer = self.infer(server, [i % 20], name)
                if status == 200:
                    status, answer = self.tell(server, [{"id": name, "truth": 1.0}])
                self.assertIn(status, (200, 503), answer)
                (accepted if status == 200 else refused).append(name)
                if status == 503:
                    answers.append(answer["error"])
                if enough():
                    return

        def wait_for_ready(status):
            deadline = time.monotonic() + 60
            while server.ask("GET", "/v2/health/ready")[0] != status:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)

        go_on(lambda: len(accepted) >= 5)
        fill()
        go_on(lambda: len(refused) >= 5)
        self.assertEqual(set(answers), {"the state is unavailable; try again later"})
        found = self.metrics(server)
        self.assertGreaterEqual(found["fcp_state_errors_total"], 1)
        self.assertRegex("".join(logged),
                         r"state/feedback\.db: (database or disk is full|disk I/O error)")
        free()
        wait_for_ready(200)
        before = len(accepted)
        go_on(lambda: len(accepted) >= before + 5)
        for names, wanted in ((accepted, {"duplicate"}), (refused, {"unknown", "accepted"})):
            told = self.tell(server, [{"id": name, "truth": 1.0} for name in names])[1]
            self.assertLessEqual({one["status"] for one in told["results"]}, wanted)
        return len(accepted)

    def test_files_that_may_not_grow(self):
        server = self.serve("--state", "state", restore_signals=False)  # SIGXFSZ stays ignored

        def limit(size):
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE,
                             (size, resource.RLIM_INFINITY))

        self.check_full(
            server, lambda: limit(os.path.getsize(self.path("state/feedback.db-wal")) + 100_000),
            lambda: limit(resource.RLIM_INFINITY))

    def test_an_optional_state(self):
        """A state that cannot be written is not in the way: rows are answered, and counted."""
        self.assertEqual(self.run_program("serve", self.made("calibrated.onnx"),
                                          "--state-optional").returncode, 2)
        server = self.serve("--state", "state", "--state-optional", restore_signals=False)
        threading.Thread(target=server.process.stderr.read, daemon=True).start()
        self.assertEqual(self.infer(server, [0], "before")[0], 200)

        def limit(size):
            resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE,
                             (size, resource.RLIM_INFINITY))

        limit(os.path.getsize(self.path("state/feedback.db-wal")))
        for i in range(3):
            self.assertEqual(self.infer(server, [0, 1], f"meanwhile{i}")[0], 200)
        self.assertEqual(server.ask("GET", "/v2/health/ready")[0], 200)
        self.assertEqual(self.tell(server, [{"id": "before", "truth": 1.0}])[0], 503)
        found = self.metrics(server)
        self.assertEqual(found['fcp_not_remembered_total{model="calibrated"}'], 6)
        self.assertEqual(found["fcp_state_up"], 0)
        limit(resource.RLIM_INFINITY)
        deadline = time.monotonic() + 60
        while self.metrics(server)["fcp_state_up"] == 0:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        self.assertEqual(self.infer(server, [0], "after")[0], 200)
        told = self.tell(server, [{"id": one, "truth": 1.0}
                                  for one in ("before", "meanwhile0", "after")])[1]
        self.assertEqual([one["status"] for one in told["results"]],
                         ["accepted", "unknown", "accepted"])

    def test_full_disk(self):
        """A file system of 3 MiB, of which another file takes all but 200 KiB for a while."""
        disk = self.path("disk")
        os.mkdir(disk)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "fcp-test", disk],
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode != 0:
            self.skipTest("a file system of its own needs the right to mount one")
        self.addCleanup(subprocess.run, ["umount", disk], check=False)
        server = self.serve("--state", "disk/state")

        def fill():
            found = os.statvfs(disk)
            with open(disk + "/other", "wb") as file:
                file.write(bytes(found.f_bavail * found.f_frsize - 200 * 1024))

        kept = self.check_full(server, fill, lambda: os.remove(disk + "/other"))
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
        again = self.serve("--state", "disk/state")
        self.assertGreaterEqual(self.monitor(again, kept)["rows"], kept)

    def test_page_while_traffic_flows(self):
        """In a browser, under --adapt: tiles, charts, the last truths, and nothing to complain of."""
        server = self.serve("--state", "state", "--adapt", "dtaci")
        page = PageBehindProxy(self, server)
        stop, truth = threading.Event(), self.truth()

        def traffic():
            for i in itertools.count():
                if stop.is_set():
                    return
                self.infer(server, [i % 20], f"order-{i}")
                self.tell(server, [{"id": f"order-{i}", "truth": truth[i % 20]}])

        thread = threading.Thread(target=traffic)
        thread.start()
        try:
            self.assertGreaterEqual(self.monitor(server, 20)["rows"], 20)
            text = page.seen()
        finally:
            stop.set()
            thread.join()
        for part in ("calibrated, version 1", "level now, target 10.0&nbsp;%", "coverage as answered",
                     "Last truths", "order-", "Coverage by hour", "Try a row"):
            self.assertIn(part, text)

    def test_alarms_and_minutes(self):
        """/status and the page say what was raised, when, and since about when."""
        server = self.serve("--state", "state")
        page = PageBehindProxy(self, server)
        for i in range(15):
            self.assertEqual(self.infer(server, [0] * 20, f"day-{i}")[0], 200)
            self.tell(server, [{"id": f"day-{i}", "row": row, "truth": 1e6} for row in range(20)])
        self.monitor(server, 300)
        model = server.json("GET", "/status")[1]["models"][0]
        alarm = model["monitor"]["alarms"][0]
        self.assertLess(alarm["since"], alarm["row"])
        self.assertRegex(alarm["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d$")
        self.assertLessEqual(alarm["began"], alarm["time"])
        self.assertEqual(sum(minute["rows"] for minute in model["minutes"]), 300)
        for minute in model["minutes"]:
            self.assertRegex(minute["period"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d$")
            self.assertEqual(minute["coverage"], 0)
        text = page.seen()
        self.assertRegex(text, f"{alarm['kind']}</b> raised .*, truth {alarm['row']}; "
                               f"since about .*, truth {alarm['since']}: ")


if __name__ == "__main__":
    program.main()
