"""Label sets, from tables and from images, verb by verb."""
import csv
import json
import os
import random
import struct
import unittest
import zlib

import program

CLASSES = 3


def field(number, value):
    """One field of a protobuf message: text, bytes or a number."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value):
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def tensor_type(name, dimensions, element=1):
    shape = b"".join(field(1, field(2, d) if isinstance(d, str) else field(1, d)) for d in dimensions)
    return field(1, name) + field(2, field(1, field(1, element) + field(2, shape)))


def colour_network():
    """ONNX: the mean of each channel of an image, times 3, is the logit of its class."""
    weight = struct.pack("<9f", *(3.0 if i == j else 0.0 for i in range(3) for j in range(3)))
    graph = b"".join((
        field(1, field(1, "image") + field(2, "mean") + field(4, "GlobalAveragePool")),
        field(1, field(1, "mean") + field(2, "feature") + field(4, "Flatten")),
        field(1, field(1, "feature") + field(1, "w") + field(2, "logits") + field(4, "Gemm")),
        field(2, "colours"),
        field(5, field(1, 3) + field(1, 3) + field(2, 1) + field(8, "w") + field(9, weight)),
        field(11, tensor_type("image", ["batch", 3, 6, 6])),
        field(12, tensor_type("logits", ["batch", 3]))))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def png(pixels):
    """A PNG of rows of (r, g, b)."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in pixels)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) +
            chunk(b"IEND", b""))


class Labels(program.Case):
    @classmethod
    def setUpClass(cls):
        pass  # the demo is not needed

    def make_table(self, name, rows, seed):
        """Two columns around the corners of a triangle, and the corner as the label."""
        rng = random.Random(seed)
        lines = ["a,b,side,kind"]
        for _ in range(rows):
            kind = rng.randrange(CLASSES)
            a, b = rng.gauss((0, 2, 1)[kind], 0.8), rng.gauss((0, 0, 1.7)[kind], 0.8)
            lines.append(f"{a:.4f},{b:.4f},{'left' if a < 1 else 'right'},{kind}")
        return self.write(name, "\n".join(lines) + "\n")

    def make_tables(self, *training):
        self.make_table("train.csv", 600, 1)
        self.make_table("cal.csv", 800, 2)
        self.make_table("test.csv", 400, 3)
        self.fcp("train", "train.csv", "--target", "kind", "--drop", "side", "--loss",
                 "cross-entropy", "--layers", "16,16", "--epochs", 30, "--out", "m.onnx", *training)

    def calibrate_labels(self, out, *arguments):
        return self.fcp("calibrate", "m.onnx", "--data", "cal.csv", "--target", "kind", "--out", out,
                        *arguments)

    def evaluate(self, model, *arguments):
        return json.loads(self.fcp("evaluate", model, "--data", "test.csv", "--target", "kind",
                                   "--json", *arguments))

    def test_every_score_covers(self):
        self.make_tables()
        for score in ("lac", "aps", "raps", "saps", "feature_margin"):
            self.calibrate_labels(score + ".onnx", "--score", score)
            result = self.evaluate(score + ".onnx", "--report", score + ".html")
            # Beta-binomial with 640 or more calibration and 400 test rows: beyond this lies 1e-6.
            self.assertGreater(result["coverage"], 0.80, score)
            self.assertLess(result["coverage"], 0.99, score)
            self.assertTrue(1 <= result["size"] < CLASSES, score)
            self.assertTrue(os.path.getsize(self.path(score + ".html")) > 5000)

    def test_what_ranks_cost_is_told(self):
        self.make_tables()
        told = self.run_program("calibrate", "m.onnx", "--data", "cal.csv", "--target", "kind",
                                "--score", "saps", "--temperature", "auto", "--out", "s.onnx")
        self.assertRegex(told.stderr + told.stdout,
                         r"saps, temperature [0-9.]+, ranks beyond 1 cost [0-9.]+: chosen on")

    def test_sets_agree_with_check(self):
        self.make_tables()
        self.calibrate_labels("c.onnx", "--score", "lac", "--temperature", "auto")
        self.fcp("predict", "c.onnx", "--data", "test.csv", "--out", "sets.csv")
        with open(self.path("sets.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(list(rows[0]), ["prediction", "size", "labels"])
        header, checked = program.parse_csv(
            self.fcp("check", "c.onnx", "--data", "test.csv", "--target", "kind"))
        self.assertEqual(header, ["score", "p_value", "in"])
        with open(self.path("test.csv"), encoding="utf-8") as file:
            truth = [row["kind"] for row in csv.DictReader(file)]
        for row, label, (_, p_value, inside) in zip(rows, truth, checked, strict=True):
            members = row["labels"].split("|") if row["labels"] else []
            self.assertEqual(len(members), int(row["size"]))
            self.assertEqual(label in members, inside == 1)
            self.assertEqual(inside == 1, p_value > 0.1)
        self.fcp("predict", "c.onnx", "--data", "test.csv", "--out", "sets.npy")
        data = self.bytes_of("sets.npy")
        self.assertIn(b"'|b1'", data[:128])
        self.assertEqual(sum(data[128:]), sum(int(row["size"]) for row in rows))

    def test_groups(self):
        self.make_tables()
        for group in ("label", "predicted", "side"):
            self.calibrate_labels("g.onnx", "--score", "feature_margin", "--calibration", "grouped",
                                  "--group", group)
            result = self.evaluate("g.onnx")
            self.assertGreater(result["coverage"], 0.8, group)
        done = self.run_program("calibrate", "m.onnx", "--data", "cal.csv", "--target", "kind",
                                "--score", "residual", "--calibration", "grouped", "--group",
                                "predicted", "--out", "x.onnx")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--group: 'predicted' applies only to scores of labels", done.stderr)

    def make_photos(self, folder, count, seed):
        rng = random.Random(seed)
        for kind, name in enumerate(("blue", "green", "red")):  # sorted, as class numbers are
            os.makedirs(self.path(f"{folder}/{name}"))
            for i in range(count):
                def pixel(channel=2 - kind):
                    return [min(255, max(0, int(rng.gauss(150 if c == channel else 110, 60))))
                            for c in range(3)]
                image = [[pixel() for _ in range(6)] for _ in range(6)]
                self.write(f"{folder}/{name}/{i:03d}.png", png(image))

    def test_images(self):
        self.make_photos("cal", 60, 1)
        self.make_photos("new", 20, 2)
        # The network's classes are red, green, blue; the folders' are in the order of their names.
        self.write("m.onnx", colour_network())
        self.write("names.txt", "red\ngreen\nblue\n")
        lines = ["file,kind"] + [f"cal/{name}/{i:03d}.png,{name}" for i in range(60)
                                 for name in ("red", "green", "blue")]
        self.write("cal.csv", "\n".join(lines) + "\n")
        self.fcp("calibrate", "m.onnx", "--data", "cal.csv", "--images", "--target", "kind",
                 "--class-names", "names.txt", "--resize", 0, "--crop", 0, "--score",
                 "feature_margin", "--cut", "feature", "--out", "c.onnx")
        # How images are read is remembered.
        self.fcp("predict", "c.onnx", "--data", "new", "--out", "sets.csv")
        with open(self.path("sets.csv"), encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 60)
        self.assertTrue({row["prediction"] for row in rows} <= {"red", "green", "blue"})
        right = sum(name in row["labels"].split("|") for row, name in
                    zip(rows, [n for n in ("blue", "green", "red") for _ in range(20)]))
        self.assertGreater(right, 40)
        self.write("new.csv", "file,kind\n" + "".join(
            f"new/{name}/{i:03d}.png,{name}\n" for i in range(20) for name in ("red", "blue")))
        result = json.loads(self.fcp("evaluate", "c.onnx", "--data", "new.csv", "--images",
                                     "--target", "kind", "--class-names", "names.txt", "--json",
                                     "--report", "r.html"))
        self.assertGreater(result["coverage"], 0.6)
        self.assertIn(b"data:image/png;base64,", self.bytes_of("r.html"))
        self.write("new/red/000.png", b"not an image")
        done = self.run_program("predict", "c.onnx", "--data", "new", "--out", "again.csv")
        self.assertEqual(done.returncode, 1)
        self.assertIn("new/red/000.png", done.stderr)
        self.assertFalse(os.path.exists(self.path("again.csv")))

    def test_usage(self):
        self.make_tables()
        for arguments, message in (
                (("--score", "nested", "--temperature", "2"), "--temperature: applies only to"),
                (("--score", "lac", "--rank-weight", "0.1"), "--rank-weight: applies only to"),
                (("--score", "lac", "--not-randomized"), "--not-randomized: applies only to"),
                (("--score", "aps", "--temperature", "cold"), "expected 'auto' or a number")):
            done = self.run_program("calibrate", "m.onnx", "--data", "cal.csv", "--target", "kind",
                                    "--out", "x.onnx", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(message, done.stderr)


if __name__ == "__main__":
    program.main()
