"""The recipe for browsers, examples/browser/: what intervals.mjs makes of an exported file is what
`fcp predict` says. Node.js runs it. With FCP_ORT_WEB, a folder with onnxruntime-web's ort.min.mjs and
its wasm files, that is the runtime; without, ONNX Runtime's Python package stands behind the same
interface."""

import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import unittest

import networks
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = ROOT / "examples" / "browser" / "intervals.mjs"
ORT_WEB = os.environ.get("FCP_ORT_WEB", "")

# onnxruntime-web's interface, as far as the recipe uses it: each call is a line to Python, which
# answers with a line.
STAND_IN = """
import fs from "node:fs";
let rest = "";
function ask(call) {
  fs.writeSync(1, JSON.stringify(call, (_, x) => (Number.isNaN(x) ? "nan" : x)) + "\\n");
  const block = Buffer.alloc(1 << 16);
  while (!rest.includes("\\n")) rest += block.toString("utf8", 0, fs.readSync(0, block));
  const end = rest.indexOf("\\n");
  const answer = JSON.parse(rest.slice(0, end));
  rest = rest.slice(end + 1);
  return answer;
}
const number = (x) => (typeof x === "string" ? Number(x) : x);
export class Tensor {
  constructor(type, data, dims) { Object.assign(this, { type, data, dims }); }
}
export class InferenceSession {
  static async create(model) {
    return Object.assign(new InferenceSession(), { model }, ask({ model }));
  }
  async run(feeds, names) {
    const [[input, x]] = Object.entries(feeds);
    const found = ask({ model: this.model, input, x: Array.from(x.data), dims: x.dims, names });
    const typed = ({ type, data, dims }) => new Tensor(type,
      type === "bool" ? Uint8Array.from(data) : Float32Array.from(data, number), dims);
    return Object.fromEntries(Object.entries(found).map(([name, one]) => [name, typed(one)]));
  }
}
"""
SCRIPT = """
import * as ort from "@ORT@";
import { load } from "@RECIPE@";
import fs from "node:fs";
if (ort.env) ort.env.wasm.numThreads = 1;
if (ort.env) ort.env.wasm.wasmPaths = "@WASM@";
const [model, given, out] = process.argv.slice(2);
try {
  const predictor = await load(ort, @MODEL@);
  const rows = JSON.parse(fs.readFileSync(given), (_, x) => (x === null ? NaN : x));
  const text = (_, x) => (typeof x === "number" && !Number.isFinite(x) ? String(x) : x);
  fs.writeFileSync(out, JSON.stringify(await predictor.predict(rows), text));
} catch (error) {
  fs.writeFileSync(out, JSON.stringify({ error: error.message }));
}
process.exit(0);
"""


def answer(call, sessions):
    """What onnxruntime-web would say to a call of the stand-in."""
    import onnxruntime

    if call["model"] not in sessions:
        sessions[call["model"]] = onnxruntime.InferenceSession(call["model"])
    session = sessions[call["model"]]
    if "x" not in call:
        return {"inputNames": [one.name for one in session.get_inputs()],
                "outputNames": [one.name for one in session.get_outputs()]}  # fmt: skip
    x = np.array([float(one) for one in call["x"]], np.float32).reshape(call["dims"])
    found = {}
    for name, array in zip(call["names"], session.run(call["names"], {call["input"]: x})):
        data = array.reshape(-1).tolist()
        data = [one if np.isfinite(one) else str(one).replace("inf", "Infinity") for one in data]
        kind = "bool" if array.dtype == bool else "float32"
        found[name] = {"type": kind, "data": data, "dims": list(array.shape)}
    return found


class Browser(networks.Case):
    def setUp(self):
        super().setUp()
        if shutil.which("node") is None:
            self.skipTest("there is no node")
        if not ORT_WEB and importlib.util.find_spec("onnxruntime") is None:
            self.skipTest("there is no onnxruntime")
    def test_a_table(self):
        """Of numbers, by one demo for all questions."""
        self.program("demo", "--out", "demo", "--quiet")
        with open(self.path("demo/test.csv"), encoding="utf-8") as file:
            self.rows = [list(map(float, line.split(",")[:-1])) for line in list(file)[1:6]]
        self.check_intervals()
        self.check_levels()
        self.check_complaints()

    def ask_recipe(self, model, rows):
        pathlib.Path(self.path("stand_in.mjs")).write_text(STAND_IN, encoding="utf-8")
        script = SCRIPT.replace("@RECIPE@", str(RECIPE))
        runtime = os.path.join(ORT_WEB, "ort.min.mjs") if ORT_WEB else "./stand_in.mjs"
        script = script.replace("@ORT@", runtime)
        script = script.replace("@WASM@", pathlib.Path(ORT_WEB or "/").resolve().as_uri() + "/")
        given = "new Uint8Array(fs.readFileSync(model))" if ORT_WEB else "model"
        script = script.replace("@MODEL@", given)
        pathlib.Path(self.path("ask.mjs")).write_text(script, encoding="utf-8")
        pathlib.Path(self.path("rows.json")).write_text(
            json.dumps(rows).replace("NaN", "null"), encoding="utf-8"
        )
        node = subprocess.Popen(
            ["node", "ask.mjs", self.path(model), "rows.json", "answers.json"], cwd=self.folder,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        sessions = {}
        for line in node.stdout:
            if line.startswith("{"):
                node.stdin.write(json.dumps(answer(json.loads(line), sessions)) + "\n")
                node.stdin.flush()
        node.stdin.close()
        node.stdout.close()
        self.assertEqual(node.wait(timeout=200), 0)
        return json.loads(pathlib.Path(self.path("answers.json")).read_text(encoding="utf-8"))

    def told(self, *arguments):
        printed = self.program(
            "predict", "demo/model.onnx", "--data", "demo/test.csv", "--quiet", *arguments
        )
        return [list(map(float, line.split(",")[1:])) for line in printed.splitlines()[1:6]]

    def check_intervals(self):
        self.program("export", "demo/model.onnx", "--alpha", "0.1", "--out", "exported.onnx")
        found = self.ask_recipe("exported.onnx", self.rows)
        for one, (lower, upper) in zip(found, self.told("--alpha", "0.1"), strict=True):
            self.assertEqual(sorted(one), ["lower", "upper"])
            self.assertAlmostEqual(one["lower"], lower, delta=1e-4 * (1 + abs(lower)))
            self.assertAlmostEqual(one["upper"], upper, delta=1e-4 * (1 + abs(upper)))

    def check_levels(self):
        self.program("export", "demo/model.onnx", "--alpha", "0.05,0.2", "--out", "exported.onnx")
        found = self.ask_recipe("exported.onnx", self.rows)
        for level in ("0.05", "0.2"):
            for one, (lower, upper) in zip(found, self.told("--alpha", level), strict=True):
                self.assertAlmostEqual(one[f"lower_{level}"], lower, delta=1e-4 * (1 + abs(lower)))
                self.assertAlmostEqual(one[f"upper_{level}"], upper, delta=1e-4 * (1 + abs(upper)))

    def test_label_sets_are_booleans(self):
        x, y = networks.label_rows(400)
        classifier = networks.fcp.FeatureConformalClassifier(
            networks.model_for(networks.perceptron(3, 4)), method="lac"
        ).conformalize(x[:300], y[:300])
        classifier.export(self.path("labels.onnx"), alpha=0.2)
        found = self.ask_recipe("labels.onnx", x[300:305].tolist())
        wanted = classifier.predict_set(x[300:305], alpha=0.2)[1][:, :, 0]
        self.assertEqual([one["in_set"] for one in found], wanted.tolist())

    def check_complaints(self):
        self.program("export", "demo/model.onnx", "--alpha", "0.1", "--out", "exported.onnx")
        short = [self.rows[0], self.rows[1][:5]]
        said = self.ask_recipe("exported.onnx", short)["error"]
        self.assertRegex(said, r"^row 1 \(from 0\): found \[.*\], expected 8 numbers$")
        self.program("train", "demo/train.csv", "--target", "minutes", "--recipe", "paper",
                     "--epochs", "1", "--out", "plain.onnx", "--quiet")  # fmt: skip
        said = self.ask_recipe("plain.onnx", self.rows)["error"]
        self.assertRegex(said, "^found the outputs .*, expected lower and upper, or in_set: use fcp")


if __name__ == "__main__":
    unittest.main(verbosity=2)
