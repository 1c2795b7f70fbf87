#!/usr/bin/env python3
"""The files of deploy/, as far as a machine without a cluster can check them: check_deploy.py PROGRAM.

promtool, systemd-analyze and PyYAML are used where they are installed."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
PROGRAM = None
if len(sys.argv) > 1 and not sys.argv[1].startswith("-"):
    PROGRAM = os.path.abspath(sys.argv.pop(1))


def run(*command):
    return subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, check=False)


def anchors(page):
    """The headings of a page, as links name them."""
    headings = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


class Deploy(unittest.TestCase):
    def check_flags(self, arguments):
        """Every flag is one that fcp serve has."""
        self.assertEqual(arguments[0], "serve", arguments)
        if PROGRAM is None:
            self.skipTest("no program was named")
        known = run(PROGRAM, "serve", "--help").stdout
        flags = [one.split("=")[0] for one in arguments if one.startswith("--")]
        self.assertGreater(len(flags), 0)
        for flag in flags:
            self.assertRegex(known, re.escape(flag) + r"\b")

    def test_rules(self):
        if shutil.which("promtool") is None:
            self.skipTest("promtool is not installed")
        for command in (("check", "rules", "fcp-alerts.yml"),
                        ("test", "rules", "fcp-alerts-test.yml")):
            done = run("promtool", *command)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_alert_has_a_section_and_a_test(self):
        rules = (DEPLOY / "fcp-alerts.yml").read_text(encoding="utf-8")
        tested = (DEPLOY / "fcp-alerts-test.yml").read_text(encoding="utf-8")
        alerts = re.findall(r"- alert: (\w+)", rules)
        books = re.findall(r"runbook: (\S+)#(\S+)", rules)
        self.assertEqual(len(alerts), len(books))
        self.assertGreater(len(alerts), 8)
        for page, anchor in books:
            self.assertIn(anchor, anchors(page))
        for alert in alerts:
            self.assertEqual(len(re.findall(rf"\b{alert}\b", tested)), 2, alert)  # silent, firing

    def test_rules_name_metrics_of_the_server(self):
        source = (ROOT / "apps/server/metrics.cc").read_text(encoding="utf-8")
        known = set(re.findall(r'\{"(fcp_\w+)", "', source))
        self.assertGreater(len(known), 20)
        rules = (DEPLOY / "fcp-alerts.yml").read_text(encoding="utf-8")
        pages = (ROOT / "docs/production.md").read_text(encoding="utf-8")
        for name in re.findall(r"\bfcp_[a-z_0-9]+\b", rules + pages):
            self.assertIn(re.sub(r"_bucket$", "", name), known)

    def test_unit(self):
        if shutil.which("systemd-analyze") is None:
            self.skipTest("systemd-analyze is not installed")
        done = run("systemd-analyze", "security", "--offline=true", "--threshold=40",
                   "./fcp-serve.service")
        self.assertEqual(done.returncode, 0, done.stdout[-300:] + done.stderr)
        unit = (DEPLOY / "fcp-serve.service").read_text(encoding="utf-8")
        command = re.search(r"^ExecStart=.*exec /usr/bin/fcp (.*)'$", unit, re.MULTILINE)[1]
        self.check_flags(command.split())
        done = run("systemd-analyze", "verify", "./fcp-serve.service")
        self.assertNotRegex(done.stderr, r"fcp-serve\.service:\d+")  # unknown names and values

    def test_dockerfile(self):
        """Known instructions, files that are there, a user by number, a health check."""
        text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        lines = [line for line in re.sub(r"\\\n", " ", text).splitlines()
                 if line and not line.startswith("#")]
        stages, found = set(), {}
        for line in lines:
            name, _, rest = line.partition(" ")
            self.assertIn(name, ("FROM", "ARG", "ENV", "RUN", "COPY", "WORKDIR", "USER", "EXPOSE",
                                 "HEALTHCHECK", "ENTRYPOINT"))
            found.setdefault(name, []).append(rest.strip())
            if name == "FROM":
                image, _, stage = rest.partition(" AS ")
                self.assertRegex(image, r"^[\w./-]+:[\w.-]+$")
                self.assertNotIn(":latest", image)
                stages.add(stage)
            if name == "COPY":
                source = re.match(r"--from=(\w+)", rest)
                self.assertTrue(source is None or source[1] in stages, rest)
            if name == "RUN":
                self.assertEqual(subprocess.run(["sh", "-n", "-c", rest], check=False).returncode, 0)
        self.assertRegex(found["USER"][-1], r"^\d+:\d+$")
        self.assertIn("/v2/health/ready", found["HEALTHCHECK"][0])
        self.assertIn("/fcp", found["ENTRYPOINT"][0])

    def test_image_has_what_the_program_needs(self):
        """Its build has the packages of scripts/install-deps.sh, and the image itself one for each
        library that the program was linked with, but for what pip's torch and onnx bring (Debian's
        libtorch and libonnx here) and what it is built without (MPI, XGBoost)."""
        text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
        build, image = (set(re.search(r"--no-install-recommends ([^&\n]*)", stage)[1].split())
                        for stage in text.split("\nFROM ")[1:])
        script = (ROOT / "scripts/install-deps.sh").read_text(encoding="utf-8")
        wanted = set(" ".join(re.findall(r"^(?:packages|optional)=\(([^)]*)\)", script,
                                         re.MULTILINE)).split())
        wanted -= {"libtorch-dev", "libonnx-dev", "libopenmpi-dev", "openmpi-bin", "libxgboost-dev"}
        self.assertEqual(build, wanted)
        if PROGRAM is None or not all(shutil.which(name) for name in ("readelf", "dpkg-query")):
            self.skipTest("needs the program, readelf and dpkg-query")
        libraries = re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", PROGRAM + "-core").stdout)
        self.assertGreater(len(libraries), 5)
        always = {"libc6", "libc6-i386", "libgcc-s1", "libstdc++6"}
        elsewhere = re.compile("libtorch|libonnx|libopenmpi|libxgboost")
        for library in libraries:
            owners = {line.split(":")[0] for line in
                      run("dpkg-query", "--search", "*/" + library).stdout.splitlines()}
            if owners and not any(elsewhere.match(owner) for owner in owners):
                self.assertTrue(owners & (image | always), f"{library} is of {owners}")

    def test_kubernetes(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("PyYAML is not installed")
        text = (DEPLOY / "kubernetes.yaml").read_text(encoding="utf-8")
        parts = {one["kind"]: one for one in yaml.safe_load_all(text)}
        self.assertEqual(set(parts), {"Service", "Deployment", "PodDisruptionBudget"})
        template = parts["Deployment"]["spec"]["template"]
        labels = template["metadata"]["labels"]
        for selector in (parts["Service"]["spec"]["selector"],
                         parts["Deployment"]["spec"]["selector"]["matchLabels"],
                         parts["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"]):
            self.assertLessEqual(selector.items(), labels.items())
        pod = template["spec"]
        container = pod["containers"][0]
        self.check_flags(container["args"])
        ports = {one["name"]: one["containerPort"] for one in container["ports"]}
        self.assertEqual(parts["Service"]["spec"]["ports"][0]["targetPort"], "http")
        for probe, path in (("startupProbe", "live"), ("livenessProbe", "live"),
                            ("readinessProbe", "ready")):
            asked = container[probe]["httpGet"]
            self.assertEqual(asked["path"], "/v2/health/" + path)
            self.assertIn(asked["port"], ports)
        image = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
        user = re.search(r"^USER (\d+)", image, re.MULTILINE)[1]
        self.assertEqual(pod["securityContext"]["runAsUser"], int(user))
        self.assertIn(f"EXPOSE {ports['http']}", image)
        names = {one["name"] for one in pod["volumes"]}
        self.assertEqual({one["name"] for one in container["volumeMounts"]}, names)
        self.assertTrue(container["securityContext"]["readOnlyRootFilesystem"])
        # The wait before the end and the longest answer fit into the time that a pod is given.
        wait = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
        self.assertLess(wait + 30, pod["terminationGracePeriodSeconds"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
