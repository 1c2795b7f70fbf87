"""A PostgreSQL of its own for a test, in a temporary folder, reached by a socket in it.

As a program: python postgresql.py COMMAND… runs the command with FCP_POSTGRESQL set to its address;
exit code 77 where PostgreSQL is not installed."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def programs():
    """The folder of initdb and pg_ctl, or None."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    found.append(shutil.which("initdb") or "")
    return os.path.dirname(found[0]) or None


class Postgresql:
    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="fcp_pg_")
        # It refuses to be run by root.
        self.user = "nobody" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(self.folder, self.user)
        self.data = os.path.join(self.folder, "data")
        self.url = f"postgresql://fcp@/postgres?host={self.folder}"
        self.run("initdb", "-D", self.data, "-A", "trust", "-U", "fcp", "-E", "UTF8", "--locale=C",
                 "--no-sync")
        self.start()

    def run(self, name, *arguments):
        subprocess.run([os.path.join(programs(), name), *arguments], check=True, user=self.user,
                       cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "120", "-l",
                 os.path.join(self.folder, "log"), "-o",
                 f"-c listen_addresses='' -c unix_socket_directories='{self.folder}'", "start")

    def stop(self, mode="fast"):
        """immediate: as if it were killed."""
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "120", "-m", mode, "stop")

    def signal(self, number):
        """To all of its processes: SIGSTOP is a database that does not answer and does not go."""
        with open(os.path.join(self.data, "postmaster.pid"), encoding="ascii") as file:
            first = file.readline().strip()
        found = subprocess.run(["ps", "-o", "pid=", "--ppid", first], capture_output=True, text=True,
                               check=False).stdout.split()
        for process in [first, *found]:
            try:
                os.kill(int(process), number)
            except ProcessLookupError:
                pass

    def end(self):
        try:
            self.stop("immediate")
        except subprocess.CalledProcessError:
            pass
        shutil.rmtree(self.folder, ignore_errors=True)


def main():
    if programs() is None:
        print("skipped: PostgreSQL is not installed")
        return SKIPPED
    database = Postgresql()
    try:
        return subprocess.run(sys.argv[1:], env={**os.environ, "FCP_POSTGRESQL": database.url},
                              check=False).returncode
    finally:
        database.end()


if __name__ == "__main__":
    sys.exit(main())
