"""The ten commands of docs/production.md, as they stand there, but on a free port."""
import os
import re
import signal
import socket
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

    def wait_for(self, port):
        until = time.time() + 60
        while time.time() < until:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/v2/health/ready", timeout=5)
                return
            except (urllib.error.URLError, OSError):
                time.sleep(0.2)
        self.fail("the server does not answer")

    def test_ten_commands(self):
        with open(PAGE, encoding="utf-8") as page:
            block = re.search(r"## Ten commands\n\n```sh\n(.*?)```", page.read(), re.S)[1]
        commands = [line.split("  #")[0].strip() for line in block.splitlines()]
        self.assertEqual(len(commands), 10)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        os.symlink(program.PROGRAM, self.path("fcp"))
        environment = dict(program.ENVIRONMENT, PATH=self.folder + ":" + os.environ["PATH"])
        for command in commands:
            command = command.replace("8080", str(port))
            if command.endswith("&"):
                server = subprocess.Popen(["bash", "-c", "exec " + command[:-1]], cwd=self.folder,
                                          env=environment, stderr=subprocess.DEVNULL)
                self.addCleanup(server.wait)
                self.addCleanup(server.send_signal, signal.SIGTERM)
                self.wait_for(port)
                continue
            done = subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment,
                                  capture_output=True, text=True, timeout=program.LONGEST)
            if command.startswith("curl") and done.returncode == 127:
                self.skipTest("curl is not installed")
            if "without SQLite" in done.stderr:
                self.skipTest("built without SQLite")
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
            self.assertNotEqual(done.stdout, "", command)


if __name__ == "__main__":
    program.main()
