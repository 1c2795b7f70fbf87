"""The ten commands of docs/production.md, as they stand there, but on a free port."""
import json
import os
import re
import signal
import subprocess
import time
import urllib.error
import urllib.request

import program

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "production.md")


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


if __name__ == "__main__":
    program.main()
