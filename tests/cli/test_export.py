"""`fcp export` in ONNX Runtime, a client that knows nothing of fcp: its intervals and label sets are
those of `fcp predict`. Skips, saying so, without the PyPI packages numpy, onnx and onnxruntime; real
networks are found beside FCP_DATA_DIR."""
import json
import os
import statistics
import sys
import time
import unittest

import program
from program import Case, TARGET

try:
    import numpy
    import onnx
    import onnxruntime
    MISSING = None
except ImportError as error:
    MISSING = f"{error.name} is not installed"

DATA = os.environ.get("FCP_DATA_DIR")
MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def open_model(path):
    """One thread, and no warnings."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def run(path, x):
    """All outputs by name."""
    model = open_model(path)
    names = [output.name for output in model.get_outputs()]
    return dict(zip(names, model.run(names, {model.get_inputs()[0].name: x})))


def batch_1_times(plain, exported, x, rounds):
    """Median milliseconds of one row, plain and exported in turns."""
    models = [open_model(plain), open_model(exported)]
    times = [[], []]
    for _ in range(rounds):
        for model, taken in zip(models, times):
            feed = {model.get_inputs()[0].name: x}
            start = time.perf_counter()
            model.run(None, feed)
            taken.append(1000 * (time.perf_counter() - start))
    return [statistics.median(each[rounds // 10:]) for each in times]


@unittest.skipIf(MISSING, MISSING)
class Export(Case):
    def exported(self, calibrated, *arguments):
        """Exports, and checks the file by ONNX's own checker."""
        self.fcp("export", calibrated, "--out", "exported.onnx", *arguments)
        model = onnx.load(self.path("exported.onnx"))
        if model.opset_import[0].version <= onnx.defs.onnx_opset_version():
            onnx.checker.check_model(model, full_check=True)
        trees = any(node.op_type == "TreeEnsembleRegressor" for node in model.graph.node)
        domains = {"", "ai.onnx.ml"} if trees else {""}
        self.assertEqual({opset.domain for opset in model.opset_import}, domains)
        self.assertEqual({node.domain for node in model.graph.node}, domains)
        return self.path("exported.onnx")

    def show(self, label, plain, x, rounds=2000):
        before, after = batch_1_times(plain, self.path("exported.onnx"), x, rounds)
        print(f"  {label}: batch 1 plain {before:.3f} ms, exported {after:.3f} ms, "
              f"+{100 * (after / before - 1):.1f} %", file=sys.stderr)

    def assert_intervals(self, found, expected, suffix="", tolerance=1e-4):
        """`expected` [N, K, 3] of predict; to `tolerance` of the largest number of the row:
        the export is wider by a slack for its runtime, and never narrower."""
        size = numpy.abs(expected).max(axis=(1, 2), keepdims=True)[:, :, 0]
        for name, column in (("lower", 1), ("upper", 2)):
            ends = found[name + suffix].reshape(expected.shape[:2])
            outwards = (ends - expected[:, :, column]) * (1 if name == "upper" else -1)
            self.assertGreaterEqual(outwards.min(), 0, name + suffix)
            worst = (outwards / size).max()
            self.assertLess(worst, tolerance, name + suffix)


class Perceptron(Export):
    """The demo's perceptron, trained by fcp."""

    def x(self):
        return numpy.array(self.features(), dtype=numpy.float32)

    def expect_intervals(self, model, calibrated, alphas=("0.1",), tolerance=1e-4):
        path = self.exported(calibrated, "--alpha", ",".join(alphas))
        found = run(path, self.x())
        for output, value in run(model, self.x()).items():
            numpy.testing.assert_allclose(found[output], value, rtol=1e-6)
        for alpha in alphas:
            self.fcp("predict", calibrated, "--data", self.made("test.csv"), "--alpha", alpha,
                     "--out", "expected.npy")
            self.assert_intervals(found, numpy.load(self.path("expected.npy")),
                                  f"_{alpha}" if len(alphas) > 1 else "", tolerance)

    def test_scores(self):
        for score in (["residual"], ["nested"], ["nested", "--cut", "auto"],
                      ["nested", "--norm", "2", "--floor", "0.5", "--cut", "1"],
                      ["linearized", "--cut", "1"], ["linearized", "--norm", "1", "--floor", "1"]):
            with self.subTest(score):
                self.calibrate("c.onnx", "--score", *score)
                self.expect_intervals(self.made("model.onnx"), "c.onnx", ("0.1", "0.05"))
                self.show(" ".join(score), self.made("model.onnx"), self.x()[:1])

    def test_heads_and_rectified(self):
        """Heads by `fcp train`, and those that calibrate learns for a network without them.
        Density takes in every gap that another runtime may find the shortest."""
        self.fcp("train", self.made("train.csv"), "--target", TARGET, "--epochs", "5", "--out",
                 "h.onnx")
        for model in (self.path("h.onnx"), self.made("model.onnx")):
            for options in (["spread"], ["quantiles"], ["density"],
                            ["spread", "--calibration", "rectified"],
                            ["residual", "--calibration", "rectified"],
                            ["nested", "--calibration", "rectified"], ["auto"]):
                with self.subTest(options, model=os.path.basename(model)):
                    self.fcp("calibrate", model, "--data", self.made("calibration.csv"), "--target",
                             TARGET, "--out", "c.onnx", "--score", *options)
                    self.expect_intervals(model, "c.onnx", ("0.1", "0.3"),
                                          tolerance=0.03 if options == ["density"] else 5e-5)

    def test_boosted_trees(self):
        """Networks with trees beside them."""
        if not json.loads(self.fcp("doctor", "--json", threads=None))["trees"]:
            self.skipTest("built without XGBoost")
        self.fcp("train", self.made("train.csv"), "--target", TARGET, "--epochs", "3", "--trees",
                 "--out", "t.onnx")
        model = onnx.load(self.path("t.onnx"))
        kinds = [node.op_type for node in model.graph.node]
        self.assertEqual(kinds.count("TreeEnsembleRegressor"), 2)  # answers and spreads
        found = run(self.path("t.onnx"), self.x())
        self.fcp("run", "t.onnx", "--data", self.made("test.csv"), "--out", "y.npy")
        numpy.testing.assert_allclose(found["prediction"], numpy.load(self.path("y.npy")),
                                      rtol=1e-5)
        for options in (["residual"], ["spread"], ["quantiles"],
                        ["linearized", "--cut", "features"], ["auto"]):
            with self.subTest(options):
                self.fcp("calibrate", "t.onnx", "--data", self.made("calibration.csv"), "--target",
                         TARGET, "--out", "c.onnx", "--score", *options)
                self.expect_intervals(self.path("t.onnx"), "c.onnx", ("0.1", "0.3"))

    def test_quantiles(self):
        self.fcp("train", self.made("train.csv"), "--target", TARGET, "--loss", "quantile",
                 "--epochs", "20", "--out", "q.onnx")
        for score in (["cqr"], ["cqr", "--asymmetric"], ["feature_cqr"],
                      ["feature_cqr", "--asymmetric"]):
            with self.subTest(score):
                self.fcp("calibrate", "q.onnx", "--data", self.made("calibration.csv"), "--target",
                         TARGET, "--out", "c.onnx", "--score", *score)
                for alpha in ("0.1", "0.6"):  # radii above and below 0
                    self.expect_intervals(self.path("q.onnx"), "c.onnx", (alpha,))

    def test_operator_sets(self):
        """Networks keep their own: the operators of the demo's are the same in all of these."""
        for opset in (9, 12, 13, 18):
            model = onnx.load(self.made("model.onnx"))
            model.opset_import[0].version = opset
            onnx.save(model, self.path("m.onnx"))
            for score in ("nested", "linearized"):
                with self.subTest(opset=opset, score=score):
                    self.fcp("calibrate", "m.onnx", "--data", self.made("calibration.csv"),
                             "--target", TARGET, "--out", "c.onnx", "--score", score)
                    self.expect_intervals(self.path("m.onnx"), "c.onnx")

    def test_infinite_radius(self):
        self.calibrate("c.onnx", "--score", "nested")
        done = self.run_program("export", "c.onnx", "--alpha", "0.0001", "--out", "e.onnx")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: the radius is infinite", done.stderr)
        found = run(self.path("e.onnx"), self.x())
        self.assertTrue(numpy.all(found["lower"] == -numpy.inf))
        self.assertTrue(numpy.all(found["upper"] == numpy.inf))

    def test_json_names_the_outputs(self):
        self.calibrate("c.onnx")
        answer = json.loads(self.fcp("export", "c.onnx", "--alpha", "0.1,0.2", "--prefix", "t_",
                                     "--out", "e.onnx", "--json"))
        self.assertEqual(answer["outputs"], {"0.1": ["t_lower_0.1", "t_upper_0.1"],
                                             "0.2": ["t_lower_0.2", "t_upper_0.2"]})
        self.assertEqual(list(answer["radius"]), ["0.1", "0.2"])

    def test_refusals(self):
        """One line, exit 1, nothing written."""
        for score, why in ((["nested", "--bound", "crown-ibp"], "bounds by crown-ibp walk"),
                           (["nested", "--calibration", "localized", "--bandwidth", "1"],
                            "localized calibration gives each row"),
                           (["surrogate", "--steps", "3"], "searches features")):
            self.calibrate("c.onnx", "--score", *score)
            done = self.run_program("export", "c.onnx", "--out", "e.onnx")
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertRegex(done.stderr, f"^fcp: c.onnx: .*{why}.*\n$")
            self.assertFalse(os.path.exists(self.path("e.onnx")))


@unittest.skipUnless(DATA, "FCP_DATA_DIR is not set")
class RealNetworks(Export):
    @classmethod
    def setUpClass(cls):
        pass  # the demo is not needed

    def model(self, name):
        path = os.path.join(DATA, "..", "models", name)
        if not os.path.exists(path):
            self.skipTest(f"{name} is not beside FCP_DATA_DIR")
        return path

    def normalised(self, pixels):
        scaled = (pixels.astype(numpy.float32) / 255 - numpy.float32(MEAN)) / numpy.float32(DEVIATION)
        return numpy.ascontiguousarray(scaled.transpose(0, 3, 1, 2), dtype=numpy.float32)

    def expect_sets(self, plain, calibrate, x, y, calibration_rows, label):
        numpy.save(self.path("x.npy"), x[:calibration_rows])
        numpy.save(self.path("y.npy"), y[:calibration_rows])
        numpy.save(self.path("new.npy"), x[calibration_rows:])
        self.fcp("calibrate", plain, "--data", "x.npy", "--target", "y.npy", "--out", "c.onnx",
                 *calibrate)
        path = self.exported("c.onnx", "--alpha", "0.1,0.02")
        found = run(path, x[calibration_rows:])
        for alpha in ("0.1", "0.02"):
            self.fcp("predict", "c.onnx", "--data", "new.npy", "--alpha", alpha, "--out", "s.npy")
            expected = numpy.load(self.path("s.npy")).astype(bool)
            members = found[f"in_set_{alpha}"]
            self.assertGreater(expected.sum(), 0)
            # Two runtimes round logits differently: at most one label in 10,000 sits so close.
            self.assertLessEqual((members != expected).mean(), 1e-4, label)
        self.show(label, plain, x[:1], rounds=300)

    def test_resnet_20(self):
        folder = os.path.join(DATA, "cifar10_test")
        x = self.normalised(numpy.load(os.path.join(folder, "images.npy"))[:1200])
        y = numpy.load(os.path.join(folder, "labels.npy"))[:1200].astype(numpy.float32)
        for score in (["lac"], ["aps", "--not-randomized"], ["raps", "--not-randomized"],
                      ["saps", "--not-randomized"],
                      ["feature_margin", "--cut", "-1"],
                      ["lac", "--calibration", "grouped", "--group", "predicted"],
                      ["feature_margin", "--cut", "-1", "--calibration", "grouped", "--group",
                       "label"]):
            with self.subTest(score):
                self.expect_sets(self.model("cifar10_resnet20.onnx"), ["--score", *score], x, y,
                                 800, "ResNet-20 " + " ".join(score))

    def test_thousand_classes(self):
        folder = os.path.join(DATA, "imagenet_val5000")
        rows = numpy.random.default_rng(0).permutation(5000)[:1500]
        x = numpy.load(os.path.join(folder, "resnet50_features.npy"))[rows].astype(numpy.float32)
        y = numpy.load(os.path.join(folder, "labels.npy"))[rows].astype(numpy.float32)
        for score in (["raps", "--not-randomized"], ["saps", "--not-randomized"],
                      ["feature_margin", "--cut", "0"]):
            with self.subTest(score):
                self.expect_sets(self.model("imagenet_resnet50_head.onnx"), ["--score", *score],
                                 x[:1050], y[:1050], 1000, "1,000 classes " + " ".join(score))

    def test_segmentation(self):
        """The FCN at its full size, on images and targets of noise."""
        plain = self.model("cityscapes_fcn_resnet50.onnx")
        random = numpy.random.default_rng(0)
        x = random.standard_normal((3, 3, 256, 512)).astype(numpy.float32)
        truth = run(plain, x)["output"]
        truth += 0.5 * random.standard_normal(truth.shape).astype(numpy.float32)
        numpy.save(self.path("x.npy"), x[:2])
        numpy.save(self.path("y.npy"), truth[:2])
        numpy.save(self.path("new.npy"), x[2:])
        for cut in ("feature", "logits"):
            with self.subTest(cut):
                self.fcp("calibrate", plain, "--data", "x.npy", "--target", "y.npy", "--out",
                         "c.onnx", "--score", "nested", "--cut", cut, "--batch", "1")
                path = self.exported("c.onnx", "--alpha", "0.4")
                found = run(path, x[2:])
                self.assertEqual(found["lower"].shape, (1, 20, 256, 512))
                self.fcp("predict", "c.onnx", "--data", "new.npy", "--alpha", "0.4", "--out",
                         "e.npy")
                self.assert_intervals(found, numpy.load(self.path("e.npy")))
                self.show(f"FCN cut at {cut}", plain, x[:1], rounds=10)


if __name__ == "__main__":
    program.main()
