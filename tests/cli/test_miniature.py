"""Segmentation from end to end on the miniature: generated scenes and a network trained on them."""
import json
import os
import subprocess

import program
from test_segment import binomial_range

IMAGES = 100  # of calibration, and of test
RANK = 91  # of 100 scores at alpha = 0.1
CHANCE = 2e-7  # of a false alarm, at either end of each of two ranges


class Miniature(program.Case):
    @classmethod
    def setUpClass(cls):
        pass  # the demo's tables are not needed

    def covered_as_promised(self, result):
        low, high = binomial_range(IMAGES, IMAGES, RANK, CHANCE)
        self.assertTrue(low <= result["covered"] <= high, result)

    def test_the_demo(self):
        done = subprocess.run(
            [program.PROGRAM, "segment", "demo", "--out", "mini", "--train", "120",
             "--calibration", str(IMAGES), "--test", str(IMAGES), "--json"],
            cwd=self.folder, env=program.ENVIRONMENT, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, timeout=1500, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        nested = json.loads(done.stdout)
        residual = nested["others"][0]
        self.assertEqual((nested["method"], residual["method"]), ("nested", "residual"))
        self.covered_as_promised(nested)
        self.covered_as_promised(residual)
        # Vanilla CP has one length everywhere; nested is shorter, at equal coverage.
        for name in ("length", "weighted_length", "boundary_length", "inside_length"):
            self.assertAlmostEqual(residual[name], 2 * residual["radius"], delta=1e-6)
        self.assertLess(nested["length"], 0.95 * residual["length"])
        # As probabilities its bands are wide where objects end and narrow inside.
        self.assertGreater(nested["boundary_uncertainty"], 1.5 * nested["inside_uncertainty"])
        self.assertEqual(len(os.listdir(self.path("mini/maps"))), IMAGES)
        with open(self.path("mini/gallery.html"), encoding="utf-8") as page:
            text = page.read()
        # Five pictures of each image, and the scale of the maps.
        self.assertEqual(text.count("data:image/png;base64,"), 8 * 5 + 1)
        self.assertIn("residual", text)
        # The whole of every image, as the paper asks for.
        self.fcp("segment", "calibrate", "mini/model.onnx", "--data", "mini/streets", "--score",
                 "residual", "--out", "joint.onnx")
        joint = json.loads(self.fcp("segment", "evaluate", "joint.onnx", "--data", "mini/streets",
                                    "--json"))
        self.assertEqual(joint["coverage"], joint["joint_coverage"])
        self.covered_as_promised(joint)
        self.assertGreater(joint["length"], residual["length"])


if __name__ == "__main__":
    program.main()
