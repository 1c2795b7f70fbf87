"""fcp serve --state postgresql://…: servers that share it, and a database that is restarted
meanwhile. Skipped where PostgreSQL is not installed or fcp was built without libpq."""
import http.client
import signal
import subprocess
import sys
import threading
import time
import unittest

import postgresql
import program
from test_serve import ServeCase


class Shared(ServeCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        done = program.start("serve", cls.demo + "/calibrated.onnx", "--port", "0", "--state",
                             "postgresql:///none?host=/nonexistent", stderr=subprocess.PIPE,
                             text=True).communicate()
        if "without libpq" in done[1]:
            raise unittest.SkipTest("built without libpq")
        cls.database = postgresql.Postgresql()
        cls.addClassCleanup(cls.database.end)

    def serve(self, *arguments, models=None):
        server = super().serve("--state", self.database.url, *arguments, models=models)
        # What it logs is read, so that it never waits.
        threading.Thread(target=server.process.stderr.read, daemon=True).start()
        return server

    def infer(self, server, row, name):
        inputs = [{**column, "shape": [1], "data": [column["data"][row]]}
                  for column in self.columns()]
        return server.json("POST", "/v2/models/calibrated/infer", {"id": name, "inputs": inputs})

    def tell(self, server, truths):
        return server.json("POST", "/v2/models/calibrated/feedback", {"feedback": truths})

    def model(self, server, rows):
        """/status of the model once its monitor has that many rows."""
        deadline = time.monotonic() + 60
        while True:
            found = server.json("GET", "/status")[1]["models"][0]
            if found["monitor"]["rows"] >= rows or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def test_servers_share_it(self):
        """Asked here, told there: both have the same truths in the same order, hence the same
        monitor and the same level."""
        truth = self.truth()
        servers = [self.serve("--adapt", "dtaci"), self.serve("--adapt", "dtaci")]
        count = 20
        for i in range(count):
            self.assertEqual(self.infer(servers[i % 2], i, f"s{i}")[0], 200)
            told = self.tell(servers[(i + i // 3) % 2], [{"id": f"s{i}", "truth": truth[i]}])[1]
            self.assertEqual(told["accepted"], 1)
        self.assertEqual(self.infer(servers[1], 1, "s0")[0], 409)  # another row under its id
        self.assertEqual(self.infer(servers[1], 0, "s0"), self.infer(servers[0], 0, "s0"))
        self.assertEqual(self.tell(servers[1], [{"id": "s3", "truth": 1}])[1]["results"][0]["status"],
                         "duplicate")
        # The database may hold truths of other tests; each server hears of the other's within seconds.
        deadline = time.monotonic() + 60
        while True:
            first, second = (self.model(server, count) for server in servers)
            for found in (first, second):
                found["monitor"].pop("timeline")
            if first == second or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.assertEqual(first, second)
        self.assertNotEqual(first["level"], 0.1)

    def test_database_restarted_meanwhile(self):
        server = self.serve()
        accepted, statuses, stop = [], [], threading.Event()

        def client():
            i = 0
            while not stop.is_set():
                name = f"r{i}"
                i += 1
                try:
                    status = self.infer(server, i % 20, name)[0]
                    if status == 200:
                        status, told = self.tell(server, [{"id": name, "truth": 1.0}])
                        if status == 200 and told["accepted"] == 1:
                            accepted.append(name)
                except (OSError, http.client.HTTPException) as error:
                    status = repr(error)
                statuses.append(status)
                if status != 200:
                    time.sleep(0.05)

        def wait_for(what, condition):
            deadline = time.monotonic() + 60
            while not condition():
                self.assertLess(time.monotonic(), deadline, what)
                time.sleep(0.02)

        thread = threading.Thread(target=client)
        thread.start()
        try:
            for mode in ("immediate", "fast"):
                before = len(accepted)
                wait_for("truths are accepted", lambda: len(accepted) >= before + 10)
                self.database.stop(mode)
                wait_for("503", lambda: statuses[-1] == 503)
                self.database.start()
                before = len(accepted)
                wait_for("truths are accepted again", lambda: len(accepted) >= before + 10)
        finally:
            stop.set()
            thread.join()
        self.assertEqual(set(statuses), {200, 503})
        told = self.tell(server, [{"id": name, "truth": 1.0} for name in accepted])[1]
        self.assertEqual({one["status"] for one in told["results"]}, {"duplicate"})
        rows = self.model(server, len(accepted))["monitor"]["rows"]
        # A truth that was kept but whose answer was 503 is the only excess: one per stop, and what
        # the other test left.
        self.assertGreaterEqual(rows, len(accepted))
        self.assertLessEqual(rows, len(accepted) + 2 + 20)


    def test_database_hangs(self):
        """Stopped, not gone: requests are answered 503 in time, SIGTERM ends the server, and when
        the database goes on so does another server."""
        server, waiting = self.serve(), self.serve()
        self.assertEqual(self.infer(server, 0, "before")[0], 200)
        self.assertEqual(self.infer(waiting, 0, "beside")[0], 200)
        self.database.signal(signal.SIGSTOP)
        self.addCleanup(self.database.signal, signal.SIGCONT)
        begun = time.monotonic()
        self.assertEqual(self.infer(server, 1, "meanwhile"),
                         (503, {"error": "the state is unavailable; try again later"}))
        self.assertLess(time.monotonic() - begun, 30)
        self.assertEqual(server.ask("GET", "/v2/health/ready")[0], 503)
        self.assertEqual(server.ask("GET", "/v2/health/live")[0], 200)
        begun = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(60), 0)
        self.assertLess(time.monotonic() - begun, 30)
        self.database.signal(signal.SIGCONT)
        deadline = time.monotonic() + 60
        while self.infer(waiting, 2, "after")[0] != 200:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.1)
        told = self.tell(waiting, [{"id": "before", "truth": 1.0}])[1]
        self.assertEqual(told["accepted"], 1)


if __name__ == "__main__":
    if postgresql.programs() is None:
        print("skipped: PostgreSQL is not installed")
        sys.exit(postgresql.SKIPPED)
    program.main()
