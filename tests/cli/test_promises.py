"""Files and options that did harm once: what a command writes is not what it reads, the terminal
shows no escape sequences, memory has a limit, and answers that are printed are in their regions."""
import os
import re
import signal
import time

import program
from program import TARGET, read_csv


class Paths(program.Case):
    def calibration(self, *arguments, model="model.onnx"):
        return ("calibrate", self.made(model), "--data", self.made("calibration.csv"), "--target",
                TARGET, "--score", "residual", *arguments)

    def assert_refused(self, done, *texts):
        self.assertEqual(done.returncode, 2, done.stderr)
        for text in texts:
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_checkpoint_is_not_the_artifact(self):
        """The artifact was deleted at the end, as a checkpoint is, and the exit code was 0."""
        self.write("link.onnx", "")
        os.remove(self.path("link.onnx"))
        os.symlink("c.onnx", self.path("link.onnx"))
        for checkpoint in ("c.onnx", "./c.onnx", self.path("c.onnx"), "link.onnx"):
            done = self.run_program(*self.calibration("--out", "c.onnx", "--checkpoint", checkpoint))
            self.assert_refused(done, "--checkpoint " + checkpoint, "--out c.onnx", "the same file")
            self.assertFalse(os.path.exists(self.path("c.onnx")))
        self.fcp(*self.calibration("--out", "c.onnx", "--checkpoint", "c.checkpoint"))
        self.assertTrue(os.path.exists(self.path("c.onnx")))

    def test_an_input_is_replaced_by_force_alone(self):
        self.fcp(*self.calibration("--out", "c.onnx"))
        before = self.bytes_of("c.onnx")
        os.link(self.path("c.onnx"), self.path("hard.onnx"))
        for out in ("c.onnx", "hard.onnx"):
            done = self.run_program("export", "c.onnx", "--out", out)
            self.assert_refused(done, "--out " + out, "reads (model)", "--force")
        self.assertEqual(self.bytes_of("c.onnx"), before)
        self.fcp("export", "c.onnx", "--out", "c.onnx", "--force")
        self.assertNotEqual(self.bytes_of("c.onnx"), before)

    def test_a_table_is_not_overwritten_by_its_intervals(self):
        self.fcp(*self.calibration("--out", "c.onnx"))
        with open(self.made("test.csv"), "rb") as file:
            self.write("rows.csv", file.read())
        done = self.run_program("predict", "c.onnx", "--data", "rows.csv", "--out", "rows.csv")
        self.assert_refused(done, "--out rows.csv", "reads (--data)")
        done = self.run_program("train", "rows.csv", "--target", TARGET, "--out", "rows.csv")
        self.assert_refused(done, "--out rows.csv")
        done = self.run_program("evaluate", "c.onnx", "--data", "rows.csv", "--target", TARGET,
                                "--report", "rows.csv")
        self.assert_refused(done, "--report rows.csv")


class Recalibration(program.Case):
    def test_what_is_not_asked_for_stays(self):
        data = ("--data", self.made("calibration.csv"), "--target", TARGET)
        self.fcp("calibrate", self.made("model.onnx"), *data, "--score", "nested", "--cut", "-1",
                 "--norm", "2", "--out", "one.onnx")
        done = self.run_program("calibrate", "one.onnx", *data, "--out", "two.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("calibrated already, with the score nested, cut at", done.stderr)
        one, two = (self.predict(name, "--alpha", "0.1") for name in ("one.onnx", "two.onnx"))
        self.assertEqual(one, two)
        self.fcp("calibrate", "one.onnx", *data, "--score", "residual", "--out", "three.onnx")
        self.assertNotEqual(self.predict("three.onnx", "--alpha", "0.1"), one)


class Terminal(program.Case):
    def test_escape_sequences_are_shown_not_obeyed(self):
        done = self.run_program("inspect", "no\x1b[31m\x9bsuch.onnx")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("\x1b", done.stderr)
        self.assertIn(r"no\x1b[31m", done.stderr)


class Memory(program.Case):
    def test_a_network_has_a_budget(self):
        arguments = ("run", self.made("model.onnx"), "--data", self.made("test.csv"), "--out",
                     "y.csv")
        done = self.run_program(*arguments, "--memory", "1kB")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"^fcp: .* node '.*': would take the network to \d+ MiB")
        self.assertFalse(os.path.exists(self.path("y.csv")))


class PrintedEnds(program.Case):
    def test_an_end_that_is_read_back_is_in(self):
        """Of residual and linearized half of the ends were out: they were rounded outwards."""
        header, rows = read_csv(self.made("test.csv"))
        place = header.index(TARGET)
        for score in ("residual", "linearized"):
            self.calibrate("c.onnx", "--score", score)
            for end in (1, 2):
                intervals = self.predict("c.onnx", "--alpha", "0.1")
                text = [",".join(header)]
                for row, interval in zip(rows, intervals):
                    cells = [repr(value) for value in row]
                    cells[place] = repr(interval[end])
                    text.append(",".join(cells))
                self.write("ends.csv", "\n".join(text) + "\n")
                checked = self.fcp("check", "c.onnx", "--data", "ends.csv", "--target", TARGET)
                inside = [line.rsplit(",", 1)[1] for line in checked.split()[1:]]
                self.assertEqual(set(inside), {"1"}, f"{score}: {inside.count('0')} are out")


class Interrupted(program.Case):
    def test_a_checkpoint_is_named(self):
        with open(self.made("calibration.csv"), "rb") as file:
            header, rows = file.read().split(b"\n", 1)
        self.write("many.csv", header + b"\n" + rows * 40)
        for _ in range(20):  # on a busy machine it may be done before it can be interrupted
            process = program.start(
                "calibrate", self.made("model.onnx"), "--data", "many.csv", "--target", TARGET, "--score",
                "nested", "--bound", "crown", "--batch", "50", "--cut", "-1", "--checkpoint", "kept",
                "--out", "c.onnx", "--threads", "1", cwd=self.folder, stderr=-1, stdout=-1, text=True)
            while process.poll() is None:
                if os.path.exists(self.path("kept")) and os.path.getsize(self.path("kept")) > 2000:
                    process.send_signal(signal.SIGINT)
                    break
                time.sleep(0.01)
            _, stderr = process.communicate(timeout=program.LONGEST)
            if process.returncode != 0:
                break
            os.remove(self.path("c.onnx"))
        self.assertEqual(process.returncode, 130, stderr)
        last = re.sub("(?s).*\n(?=fcp: )", "", stderr)
        self.assertEqual(last, "fcp: interrupted; kept keeps what was done, and the same command "
                               "goes on from it; nothing else was written\n")


if __name__ == "__main__":
    program.main()
