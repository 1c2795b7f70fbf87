"""The commands of docs/production.md, as they stand there, but on a free port, and of scale.md."""
import gzip
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

import program

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs")
PAGE = os.path.join(DOCS, "production.md")
SCALE = os.path.join(DOCS, "scale.md")


class Production(program.Case):
    @classmethod
    def setUpClass(cls):  # the commands make their own files
        pass

    def port_of(self, server):
        """The port that the server's first line names; a moment later it answers there."""
        line = server.stderr.readline()
        if "without SQLite" in line:
            self.skipTest("built without SQLite")
        self.assertTrue(line.startswith("{"), line)
        port = json.loads(line)["port"]
        until = time.monotonic() + program.LONGEST
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=30)
                return port
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        self.fail("the server does not answer")

    def test_ten_commands(self):
        with open(PAGE, encoding="utf-8") as page:
            block = re.search(r"## Ten commands\n\n```sh\n(.*?)```", page.read(), re.S)[1]
        commands = [line.split("  #")[0].strip() for line in block.splitlines()]
        self.assertEqual(len(commands), 10)
        port = 0  # any that is free
        os.symlink(program.PROGRAM, self.path("fcp"))
        environment = dict(program.ENVIRONMENT, PATH=self.folder + ":" + os.environ["PATH"])
        for command in commands:
            command = command.replace("8080", str(port))
            if command.endswith("&"):
                server = subprocess.Popen(["bash", "-c", "exec " + command[:-1]], cwd=self.folder,
                                          env=environment, stderr=subprocess.PIPE, text=True)
                self.addCleanup(server.stderr.close)
                self.addCleanup(server.wait)
                self.addCleanup(server.send_signal, signal.SIGTERM)
                port = self.port_of(server)
                continue
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment,
                                  capture_output=True, text=True, timeout=program.LONGEST)
            if command.startswith("curl") and done.returncode == 127:
                self.skipTest("curl is not installed")
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
            self.assertNotEqual(done.stdout, "", command)


    def test_shards(self):
        """The commands of docs/scale.md: shards, pipes and tasks have the answers of the whole."""
        with open(SCALE, encoding="utf-8") as page:
            blocks = re.findall(r"```sh\n(.*?)```", page.read(), re.S)
        self.assertEqual(len(blocks), 4)
        os.symlink(program.PROGRAM, self.path("fcp"))
        environment = dict(program.ENVIRONMENT, PATH=self.folder + ":" + os.environ["PATH"],
                           SLURM_ARRAY_TASK_ID="1")
        for command in "".join(blocks).splitlines():
            done = subprocess.run(["bash", "-c", "set -o pipefail; " + command], cwd=self.folder,
                                  env=environment, capture_output=True, text=True,
                                  timeout=program.LONGEST, check=False)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        self.fcp("predict", "minutes.onnx", "--data", "demo/test.csv", "--out", "whole.csv")

        def lines(name):
            opened = gzip.open if name.endswith(".gz") else open
            with opened(self.path(name), "rt", encoding="utf-8") as file:
                return file.read().splitlines()

        header, *rows = lines("whole.csv")
        names = sorted(os.listdir(self.path("shards")))
        self.assertGreater(len(names), 2)
        shards = [lines("out/" + name) for name in names]
        self.assertEqual({shard[0] for shard in shards}, {header})
        self.assertEqual([line for shard in shards for line in shard[1:]], rows)
        self.assertEqual(lines("out/piped.csv"), shards[0])
        self.assertEqual(lines("out/piped.csv.gz"), shards[0])
        self.assertEqual(lines("out/task-1.csv"), shards[1])
        # What is there already is left alone.
        with open(self.path("out/" + names[0]), "w", encoding="utf-8") as file:
            file.write("kept\n")
        again = next(line for line in blocks[0].splitlines() if "xargs" in line)
        subprocess.run(["bash", "-c", again], cwd=self.folder, env=environment, check=True,
                       timeout=program.LONGEST)
        self.assertEqual(lines("out/" + names[0]), ["kept"])


if __name__ == "__main__":
    program.main()
