"""fcp segment, verb by verb, on a network small enough to be written by hand."""
import json
import math
import os
import random
import struct
import zlib

import program
from test_labels import field, png, tensor_type

HEIGHT, WIDTH, CLASSES = 12, 16, 4  # class 0: no label
COLOURS = [(0, 0, 0), (200, 40, 40), (40, 200, 40), (40, 40, 200)]


def tensor(name, dimensions, values):
    return field(5, b"".join(field(1, d) for d in dimensions) + field(2, 1) + field(8, name) +
                 field(9, struct.pack(f"<{len(values)}f", *values)))


def node(op, inputs, output, ints=()):
    data = b"".join(field(1, name) for name in inputs) + field(2, output) + field(4, op)
    for name, values in ints:
        data += field(5, field(1, name) + b"".join(field(8, v) for v in values) + field(20, 7))
    return field(1, data)


def network(channels=CLASSES, size=(HEIGHT, WIDTH), scale=1.0, answer=None):
    """Colours are averaged over 3 x 3 pixels (`feature`), and each class is likely where its colour
    is strong: about -2 there and 2 elsewhere, as log(-log p) is. `scale` divides the feature."""
    blur = [(1 / 9 if i == j else 0.0) / scale for i in range(3) for j in range(3)
            for _ in range(9)]
    mix = [(scale if i == j else 0.0) for i in range(3) for j in range(3)]
    pick = [(-3.0 if c == j + 1 else 0.2) for c in range(channels) for j in range(3)]
    graph = b"".join((
        node("Conv", ["image", "blur"], "blurred", [("pads", (1, 1, 1, 1))]),
        node("Relu", ["blurred"], "feature"),
        node("Conv", ["feature", "mix"], "mixed"),
        node("Relu", ["mixed"], "strong"),
        node("Conv", ["strong", "pick", "bias"], "output"),
        field(2, "colours"),
        tensor("blur", (3, 3, 3, 3), blur), tensor("mix", (3, 3, 1, 1), mix),
        tensor("pick", (channels, 3, 1, 1), pick), tensor("bias", (channels,), [1.5] * channels),
        field(11, tensor_type("image", ["batch", 3, *size])),
        field(12, tensor_type("output", ["batch", channels, *(answer or size)]))))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


def grey_png(rows):
    """A grey PNG of rows of bytes."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(b"".join(b"\0" + bytes(row) for row in rows))) +
            chunk(b"IEND", b""))


def scene(generator, height=HEIGHT, width=WIDTH):
    """A ground, a rectangle on it, and sometimes a strip without labels."""
    ground = generator.randrange(1, CLASSES)
    labels = [[ground] * width for _ in range(height)]
    thing = generator.randrange(1, CLASSES)
    top, left = generator.randrange(height - 4), generator.randrange(width - 5)
    for y in range(top, top + 4):
        for x in range(left, left + 5):
            labels[y][x] = thing
    if generator.random() < 0.5:
        labels[-1] = [0] * width
    noise = generator.uniform(5, 40)
    image = [[tuple(min(255, max(0, round(c + generator.gauss(0, noise)))) for c in COLOURS[label])
              for label in row] for row in labels]
    return image, labels


def write_data(root, counts, seed=1, height=HEIGHT):
    generator = random.Random(seed)
    for name in ("images", "labels"):
        os.makedirs(os.path.join(root, name))
    lines = ["file,fold"]
    for fold, count in counts.items():
        for i in range(count):
            name = f"{fold}{i:03}"
            image, labels = scene(generator, height)
            with open(os.path.join(root, "images", name + ".png"), "wb") as file:
                file.write(png(image))
            with open(os.path.join(root, "labels", name + ".png"), "wb") as file:
                file.write(grey_png(labels))
            lines.append(f"{name},{fold}")
    with open(os.path.join(root, "split.csv"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def binomial_range(n, calibration, rank, chance):
    """Counts of covered test images that are not less likely than `chance` at either end, where
    coverage follows Beta(rank, calibration + 1 - rank)."""
    def log_beta(a, b):
        return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    a, b = rank, calibration + 1 - rank
    probabilities = [math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) +
                              log_beta(k + a, n - k + b) - log_beta(a, b)) for k in range(n + 1)]
    low, sum_low = 0, probabilities[0]
    while sum_low < chance:
        low += 1
        sum_low += probabilities[low]
    high, sum_high = n, probabilities[n]
    while sum_high < chance:
        high -= 1
        sum_high += probabilities[high]
    return low, high


def target(labels):
    """log(-log y) of the blurred one-hot labels of classes 1, 2, ...: [class][y][x], written out."""
    sigma = 0.3 * ((7 - 1) * 0.5 - 1) + 0.8
    line = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(-3, 4)]
    line = [value / sum(line) for value in line]
    height, width = len(labels), len(labels[0])

    def mirrored(at, n):
        return -at if at < 0 else 2 * (n - 1) - at if at >= n else at

    def blurred(label, y, x):
        total = 0
        for dy in range(-3, 4):
            for dx in range(-3, 4):
                here = labels[mirrored(y + dy, height)][mirrored(x + dx, width)] == label
                total += line[dy + 3] * line[dx + 3] * (1 - 1e-6 if here else 1e-6)
        return total
    return [[[math.log(-math.log(blurred(label, y, x))) for x in range(width)]
             for y in range(height)] for label in range(1, CLASSES)]


class Segment(program.Case):
    @classmethod
    def setUpClass(cls):
        pass  # the demo's tables are not needed

    def setUp(self):
        super().setUp()
        self.write("net.onnx", network())
        write_data(self.path("data"), {"calibration": 60, "test": 60})

    def calibrate(self, *arguments, out="c.onnx", model="net.onnx", data="data"):
        return json.loads(self.fcp("segment", "calibrate", model, "--data", data, "--out", out,
                                   "--json", *arguments))

    def evaluate(self, *arguments, model="c.onnx", data="data"):
        return json.loads(self.fcp("segment", "evaluate", model, "--data", data, "--json",
                                   *arguments))

    def refused(self, code, text, *arguments):
        done = self.run_program("segment", *arguments)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_bands_of_a_share_of_the_pixels(self):
        made = self.calibrate("--pixels", "0.9")
        self.assertEqual((made["images"], made["channels"], made["cut"]), (60, 3, "feature"))
        result = self.evaluate("--alpha", "0.1")
        low, high = binomial_range(60, 60, 55, 5e-7)
        plain = result["others"][0]
        for method in (result, plain):
            self.assertTrue(low <= method["covered"] <= high, method)
            self.assertLessEqual(method["joint_coverage"], method["coverage"])
            self.assertGreater(method["pixel_coverage"], 0.9)
            self.assertGreaterEqual(method["value_coverage"], method["pixel_coverage"])
        self.assertEqual(plain["method"], "residual")
        for name in ("length", "weighted_length", "boundary_length", "inside_length"):
            self.assertAlmostEqual(plain[name], 2 * plain["radius"], delta=1e-9)
        self.assertGreater(abs(result["boundary_length"] - result["inside_length"]), 1e-3)

    def test_all_pixels(self):
        self.calibrate()
        result = self.evaluate()
        low, high = binomial_range(60, 60, 55, 1e-6)
        self.assertTrue(low <= result["covered"] <= high, result)
        self.assertEqual(result["coverage"], result["joint_coverage"])
        some = self.evaluate("--alpha", "0.5")
        self.assertLess(some["length"], result["length"])

    def test_scale_of_the_feature(self):
        self.write("scaled.onnx", network(scale=8.0))
        nested = [self.calibrate("--pixels", "0.9", model=model) and self.evaluate()
                  for model in ("net.onnx", "scaled.onnx")]
        self.assertAlmostEqual(nested[0]["radius"], 8 * nested[1]["radius"], delta=1e-4)
        self.assertAlmostEqual(nested[0]["length"], nested[1]["length"],
                               delta=1e-5 * nested[0]["length"])
        self.assertEqual(nested[0]["covered"], nested[1]["covered"])
        paper = [self.calibrate("--score", "surrogate", "--paper", model=model) and self.evaluate()
                 for model in ("net.onnx", "scaled.onnx")]
        self.assertGreater(paper[1]["length"], 1.5 * paper[0]["length"])

    def test_surrogate_shows_both_coverages(self):
        self.calibrate("--score", "surrogate", "--paper", "--scores", "scores.csv")
        result = self.evaluate("--images", "images.csv")
        low, high = binomial_range(60, 60, 55, 1e-6)
        self.assertTrue(low <= round(60 * result["detection_coverage"]) <= high, result)
        self.assertIn("coverage", result)
        with open(self.path("scores.csv"), encoding="utf-8") as file:
            lines = file.read().splitlines()
        self.assertEqual(lines[0], "file,score,residual")
        self.assertEqual(len(lines), 61)
        self.assertTrue(lines[1].startswith("calibration000,"))
        with open(self.path("images.csv"), encoding="utf-8") as file:
            self.assertEqual(len(file.read().splitlines()), 1 + 2 * 60)
        table = self.fcp("segment", "evaluate", "c.onnx", "--data", "data")
        self.assertIn("detected", table)
        self.refused(2, "--pixels: applies only to nested, residual and lac", "calibrate",
                     "net.onnx", "--data", "data", "--out", "x.onnx", "--score", "surrogate",
                     "--pixels", "0.9")

    def test_class_weights(self):
        rows = "class,loss_weight\n0,0\n1,0.5\n2,0.25\n3,0.25\n"
        self.write("weights.csv", rows)
        ours = self.calibrate("--score", "surrogate", "--class-weights", "weights.csv")
        enet = self.calibrate("--score", "surrogate")
        self.assertNotEqual(ours["radius"], enet["radius"])
        self.write("bad.csv", rows.replace("0.5", "x"))
        self.refused(1, "bad.csv: row 2: found class 1 with weight x", "calibrate", "net.onnx",
                     "--data", "data", "--out", "x.onnx", "--score", "surrogate",
                     "--class-weights", "bad.csv")
        self.write("few.csv", "class,loss_weight\n1,1\n2,1\n")
        self.refused(1, "few.csv: no weight of class 3", "calibrate", "net.onnx", "--data", "data",
                     "--out", "x.onnx", "--score", "surrogate", "--class-weights", "few.csv")

    def test_pictures_and_bands_of_new_images(self):
        self.calibrate("--pixels", "0.9")
        made = json.loads(self.fcp("segment", "predict", "c.onnx", "--data", "data/images", "--out",
                                   "maps", "--bands", "--json"))
        self.assertEqual(made["images"], 120)  # a plain folder has no folds
        with open(self.path("maps/test007.png"), "rb") as file:
            self.assertEqual(struct.unpack(">II", file.read()[16:24]), (3 * WIDTH + 2 * 4, HEIGHT))
        # The figures that `evaluate` gives for the image, from its bands and its labels.
        self.evaluate("--images", "images.csv")
        with open(self.path("images.csv"), encoding="utf-8") as file:
            rows = [line.split(",") for line in file.read().splitlines()]
        figures = next(dict(zip(rows[0], row)) for row in rows
                       if row[:2] == ["test007", "nested"])
        generator = random.Random(1)
        scenes = [scene(generator) for _ in range(60 + 8)]
        truth = target(scenes[67][1])
        shape, numbers = program.read_npy(self.path("maps/test007.npy"))
        self.assertEqual(shape, (2, 3, HEIGHT, WIDTH))
        count = 3 * HEIGHT * WIDTH
        lower, upper = numbers[:count], numbers[count:]
        flat = [value for plane in truth for row in plane for value in row]
        inside = [low <= value <= high for low, value, high in zip(lower, flat, upper)]
        pixels = [all(inside[k::HEIGHT * WIDTH]) for k in range(HEIGHT * WIDTH)]
        self.assertAlmostEqual(float(figures["value_share"]), sum(inside) / count, delta=2e-3)
        self.assertAlmostEqual(float(figures["pixel_share"]), sum(pixels) / len(pixels), delta=6e-3)
        self.assertAlmostEqual(float(figures["length"]), (sum(upper) - sum(lower)) / count,
                               delta=1e-5)
        one = json.loads(self.fcp("segment", "predict", "c.onnx", "--data",
                                  "data/images/test001.png", "--out", "one", "--json"))
        self.assertEqual(one["images"], 1)
        self.assertEqual(os.listdir(self.path("one")), ["test001.png"])
        page = self.fcp("segment", "evaluate", "c.onnx", "--data", "data", "--report", "g.html",
                        "--pictures", "2")
        self.assertIn("report: g.html", page)
        with open(self.path("g.html"), encoding="utf-8") as file:
            text = file.read()
        self.assertEqual(text.count("data:image/png;base64,"), 2 * 5 + 1)  # and the scale
        self.assertIn("in red: outside a band", text)
        self.assertIn('<section id="promise">', text)

    def test_sets_of_labels(self):
        self.calibrate("--score", "lac", "--pixels", "0.95", "--allow-empty")
        result = self.evaluate()
        low, high = binomial_range(60, 60, 55, 1e-6)
        self.assertTrue(low <= result["covered"] <= high, result)
        self.assertNotIn("length", result)
        self.assertTrue(0 < result["size"] <= 3)
        self.fcp("segment", "predict", "c.onnx", "--data", "data/images/test001.png", "--out",
                 "sets", "--bands")
        header = self.bytes_of("sets/test001.npy")[:128]
        self.assertIn(b"'|b1'", header)
        self.assertIn(b"(3, 12, 16)", header)
        self.assertGreater(abs(result["boundary_size"] - result["inside_size"]), 0.01)

    def test_channels_without_class_0(self):
        self.write("three.onnx", network(channels=3))
        made = self.calibrate("--classes", "4", model="three.onnx")
        self.assertEqual((made["classes"], made["channels"]), (4, 3))
        kept = self.calibrate("--keep-class-0")
        self.assertEqual((kept["classes"], kept["channels"]), (4, 4))

    def test_what_calibration_of_rows_can_do(self):
        whole = self.calibrate("--pixels", "0.9")
        some = self.calibrate("--pixels", "0.9", "--levels", "0.1,0.2", out="levels.onnx")
        self.assertEqual(some["radius"], {"0.2": whole["radius"]["0.2"],
                                          "0.1": whole["radius"]["0.1"]})
        self.calibrate("--pixels", "0.9", "--checkpoint", "kept", out="same.onnx")
        self.assertEqual(self.bytes_of("same.onnx"), self.bytes_of("c.onnx"))
        self.assertFalse(os.path.exists(self.path("kept")))
        program.write_npy(self.path("groups.npy"), [0, 1] * 30)
        grouped = self.calibrate("--pixels", "0.9", "--group", "groups.npy", out="groups.onnx")
        self.assertNotIn("radius", grouped)
        self.assertEqual(grouped["images"], 60)
        program.write_npy(self.path("few.npy"), [0] * 59)
        self.refused(1, "group: names 59 rows, the data has more", "calibrate", "net.onnx",
                     "--data", "data", "--out", "x.onnx", "--group", "few.npy")

    def test_a_weight_that_is_not_a_number_is_named(self):
        self.write("nan.onnx", network().replace(struct.pack("<f", 1.5),
                                                 struct.pack("<f", math.nan)))
        self.refused(1, "nan.onnx: Conv node making 'output': its weight 'bias' is NaN at element 0",
                     "calibrate", "nan.onnx", "--data", "data", "--out", "x.onnx")

    def test_wrong_input(self):
        calibrate = ("calibrate", "net.onnx", "--out", "x.onnx", "--data")
        self.refused(1, "nowhere: ", *calibrate, "nowhere")
        os.makedirs(self.path("empty"))
        self.refused(1, "empty: no layout of segmentation data", *calibrate, "empty")
        write_data(self.path("tall"), {"calibration": 3}, height=14)
        self.refused(1, "tall/images/calibration000.png: 16 x 14 pixels, the network takes 16 x "
                     "12; with resize images and labels are made to fit", *calibrate, "tall")
        self.calibrate("--resize", data="tall")
        write_data(self.path("odd"), {"calibration": 3})
        with open(self.path("odd/labels/calibration001.png"), "wb") as file:
            file.write(grey_png([[1] * WIDTH] * (HEIGHT - 1)))
        self.refused(1, "odd/labels/calibration001.png: 16 x 11 pixels, but "
                     "odd/images/calibration001.png has 16 x 12", *calibrate, "odd")
        os.remove(self.path("odd/labels/calibration001.png"))
        self.refused(1, "odd/images/calibration001.png: no labels called calibration001 in "
                     "odd/labels", *calibrate, "odd")
        write_data(self.path("wild"), {"calibration": 3})
        with open(self.path("wild/labels/calibration002.png"), "wb") as file:
            file.write(grey_png([[1] * WIDTH] * (HEIGHT - 1) + [[9] * WIDTH]))
        self.refused(1, "wild/labels/calibration002.png: row 11, column 0", *calibrate, "wild")
        self.refused(1, "output 'output' has 4 channels for 7 classes", *calibrate, "data",
                     "--classes", "7")
        write_data(self.path("folds"), {"train": 2, "val": 2})
        self.refused(1, "folds: has the folds train, val; name the fold to use",
                     *calibrate, "folds")
        self.assertFalse(os.path.exists(self.path("x.onnx")))

    def test_wrong_network(self):
        self.write("small.onnx", network(answer=(6, 8)))
        self.refused(1, "output 'output' has 8 x 6 pixels, the images 16 x 12; expected one answer "
                     "for each pixel of the image", "calibrate", "small.onnx", "--data", "data",
                     "--out", "x.onnx")
        self.refused(1, "net.onnx: is a network without calibration", "evaluate", "net.onnx",
                     "--data", "data")
        self.write("broken.onnx", b"nonsense")
        self.refused(1, "broken.onnx", "calibrate", "broken.onnx", "--data", "data", "--out",
                     "x.onnx")
        self.refused(2, "--cut: applies only to nested, linearized", "calibrate",
                     "net.onnx", "--data", "data", "--out", "x.onnx", "--score", "residual",
                     "--cut", "feature")


if __name__ == "__main__":
    program.main()
