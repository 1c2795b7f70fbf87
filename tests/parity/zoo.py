#!/usr/bin/env python3
"""Networks that others wrote, against ONNX Runtime: python zoo.py PROGRAM [FILTER …].

Each network is made with random weights in a small configuration (zoo_networks.py and the files it
names), exported as people export it (torch's old and new exporter, skl2onnx, onnxmltools, CatBoost, Keras),
and

  read     `fcp inspect` takes the file;
  forward  `fcp run` gives what ONNX Runtime gives, to 1e-4 of the largest answer, or to what
           TOLERANCE says;
  scores   a regressor calibrates with residual and nested, a classifier with lac and feature_margin;
           what has no hidden layer (trees, linear models) with residual or lac;
  blocks   of the transformers in BLOCKS, nested calibrates and predicts with a cut before the last
           block: each bound covers the rows it was calibrated on, its intervals hold the answers,
           and the export of ibp's equals them or is refused for want of precision;
  export   `fcp export` run by ONNX Runtime gives the regions of `fcp predict` ("equal"), or regions
           that contain them ("wider"): exports allow for another runtime's rounding, which matters
           where all rows have nearly the same answer.

A network is known by a name such as timm/swin_tiny:new; FILTER is a part of it. Each is tried in a
process of its own, with limits on memory and time. What is not installed is left out and said so.
The exit code is 1 where a network fails in one of these, but for what REFUSED names; --list only
names them. --keep FOLDER leaves each network's files there and takes them from there the next time;
--json FILE adds one line per network, which zoo_table.py makes the table of docs/networks.md from.

Needs from PyPI: onnx, onnxruntime, numpy; and whatever of torch, torchvision, timm, transformers,
onnxscript, scikit-learn, skl2onnx, lightgbm, xgboost, onnxmltools, catboost, keras is wanted.
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings

import numpy as np

import zoo_language  # noqa: F401  adds to makers
import zoo_tables  # noqa: F401  adds to makers
from zoo_networks import NUMBERS, makers

ALPHA = "0.2"
MEMORY = 8 << 30
SECONDS = 600
IMAGES = 20  # rows of images that are tried

# Parts of names, and what fcp does not do for such networks: the score that is refused.
REFUSED = {
    "own/deep_fm": "nested",  # a sum of parts that all read the inputs: no cut but the inputs
    "own/attentive_sequence": "nested",  # its answers leave a GRU's states by several ways
    "own/pooled_by_attention": "nested",  # an Einsum of two varying tensors: not exported
    "reduced/q": "feature_margin",  # roundings behind the cut: not exported; QLinear: no bounds
}

# Parts of names, and how far answers may be from ONNX Runtime's. Half precision rounds each number
# to 2^-11 of itself, in about eight places between input and output; fcp computes in float32.
# Dynamic quantisation has 255 steps in each of up to four layers, and a rounding that falls the
# other way moves what follows by one of them.
TOLERANCE = {"reduced/float16": 8 * 2.0**-11, "reduced/dynamic": 4 / 255}
# Labels that are that close to the edge of a set may fall either way: at most this share of all.
EDGE = {"reduced/": 0.02}
# Quantised networks give the bits of ONNX Runtime without its optimisations. With them it rounds
# elsewhere, and a rounding that falls the other way is a whole step.
WITHOUT_OPTIMIZATION = "reduced/"
# The range that dynamic quantisation takes is that of all rows together. fcp answers each row by
# itself, and so does ONNX Runtime here.
ROW_BY_ROW = "reduced/dynamic"

# Cuts before the last block of a transformer.
BLOCKS = {
    "torchvision/vit:old": "/encoder/layers/encoder_layer_1/Add_1_output_0",
    "torchvision/vit:new": "add_4",
    "transformers/Bert:old":
        "/model/bert/encoder/layer.0/output/LayerNorm/LayerNormalization_output_0",
    "transformers/Bert:new": "layer_norm_2",
}


class Trial:
    def __init__(self, program, folder, name):
        self.program, self.folder, self.name = program, folder, name
        _, self.task, self.maker = makers[name]
        self.found = {"name": name, "read": "", "forward": "", "scores": [], "export": "",
                      "refused": "", "why": ""}

    def path(self, name):
        return os.path.join(self.folder, name)

    def fcp(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments), "--threads", "1", "--quiet"],
                              cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or f"exit {done.returncode}").splitlines()[0])
        return done.stdout

    def session(self, file):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        if self.name.startswith(WITHOUT_OPTIMIZATION):
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        return onnxruntime.InferenceSession(self.path(file), options,
                                            providers=["CPUExecutionProvider"])

    def answers_of(self, session, names):
        """One array per output, for all rows."""
        if not self.name.startswith(ROW_BY_ROW):
            return session.run(names, self.inputs)
        count = len(next(iter(self.inputs.values())))
        rows = [session.run(names, {k: v[i : i + 1] for k, v in self.inputs.items()})
                for i in range(count)]
        return [np.concatenate(parts) for parts in zip(*rows)]

    def run(self):
        kept = self.path("made.npz")
        if os.path.exists(kept):
            self.rows = dict(np.load(kept))
        else:
            self.rows = self.maker(self.path("model.onnx"))
            np.savez(kept, **self.rows)
        if any(values.ndim > 3 for values in self.rows.values()):
            self.rows = {name: values[:IMAGES] for name, values in self.rows.items()}
        if len(self.rows) > 1:
            self.data = "rows.npz"
            np.savez(self.path("rows.npz"), **self.rows)
        else:
            self.data = "rows.npy"
            np.save(self.path("rows.npy"), next(iter(self.rows.values())))
        self.session("model.onnx")  # what ONNX Runtime does not read was not made well
        try:
            self.fcp("inspect", "model.onnx")
            self.found["read"] = "yes"
            self.forward()
            self.calibrate()
            if self.name in BLOCKS:
                self.blocks()
        except RuntimeError as error:
            self.found["why"] += str(error)[:300]
        return self.found

    def forward(self):
        session = self.session("model.onnx")
        self.inputs = {i.name: self.rows[i.name] for i in session.get_inputs()}
        outputs = self.answers_of(session, None)
        names = [o.name for o in session.get_outputs()]
        place = max(range(len(names)), key=lambda i: np.asarray(outputs[i]).dtype.kind == "f")
        self.output, expected = names[place], np.asarray(outputs[place], np.float64)
        arguments = []
        for name in self.inputs:
            file = f"in{len(arguments)}.npy"
            np.save(self.path(file), self.rows[name])
            arguments += ["--data", f"{name}={file}"]
        out = [f"{self.output}=out.npy"] if len(names) > 1 else ["out.npy"]
        self.fcp("run", "model.onnx", *arguments, "--out", *out)
        found = np.load(self.path("out.npy")).reshape(expected.shape)
        self.answers = expected.reshape(len(expected), -1)
        distance = np.abs(found - expected).max() / max(1e-30, np.abs(expected).max())
        self.found["forward"] = f"{distance:.0e}"
        allowed = max([TOLERANCE[part] for part in TOLERANCE if part in self.name], default=1e-4)
        if not distance <= allowed:
            raise RuntimeError(f"forward differs by {distance:.1e} of the largest answer")

    def noisy_answers(self):
        random = np.random.default_rng(1)
        noise = 0.3 * random.normal(size=self.answers.shape)
        if (self.answers > 0).all():  # no truth where the network cannot answer
            return self.answers * np.exp(noise)
        return self.answers + noise * max(1e-6, self.answers.std())

    def truths(self):
        if self.task == NUMBERS:
            return self.noisy_answers()
        classes = 2 if self.task == "binary" else self.answers.shape[1]
        return np.random.default_rng(1).integers(classes, size=len(self.answers))

    def calibrate(self):
        np.save(self.path("y.npy"), self.truths())
        flat = self.name.split("/")[0] in ("sklearn", "lightgbm", "xgboost", "catboost")
        hidden = not flat or "mlp" in self.name
        labels = self.task != NUMBERS
        scores = ["lac", "feature_margin"] if labels else ["residual", "nested"]
        for score in scores if hidden else scores[:1]:
            try:
                self.regions(score, labels)
            except RuntimeError as error:
                self.say(score, f"{score}: {str(error)[:200]} ")

    def say(self, score, text):
        """What did not work: as expected, or not."""
        refused = any(part in self.name and score == REFUSED[part] for part in REFUSED)
        self.found["refused" if refused else "why"] += text

    def regions(self, score, labels):
        # Of 20 rows, feature_margin chooses its options on half.
        few = ["--selection", "0.5"] if score == "feature_margin" and len(self.answers) < 50 else []
        self.fcp("calibrate", "model.onnx", "--data", self.data, "--target", "y.npy", "--score",
                 score, "--alpha", ALPHA, "--output", self.output, "--out", "calibrated.onnx", *few)
        self.fcp("predict", "calibrated.onnx", "--data", self.data, "--alpha", ALPHA, "--out",
                 "regions.npy")
        self.found["scores"].append(score)
        try:
            self.fcp("export", "calibrated.onnx", "--alpha", ALPHA, "--out", "plain.onnx")
        except RuntimeError as error:
            return self.say(score, f"export of {score}: {str(error)[:200]} ")
        verdict = self.compare_export(labels)
        if verdict == "differs":
            self.found["why"] += f"{score}: export differs from predict "
        if not self.found["export"] or verdict != "equal":
            self.found["export"] = verdict

    def compare_export(self, labels):
        """"equal", "wider" where regions only gain, or "differs"."""
        expected = np.load(self.path("regions.npy"))
        session = self.session("plain.onnx")
        outputs = self.answers_of(session, ["in_set"] if labels else ["lower", "upper"])
        if labels:
            found = outputs[0].reshape(expected.shape)
            edge = max([EDGE[part] for part in EDGE if part in self.name], default=0.002)
            allowed = max(1, edge * found.size)
            if np.sum(found != expected) <= allowed:
                return "equal"
            return "differs" if np.sum((expected != 0) & (found == 0)) > allowed else "wider"
        ends = np.stack([o.reshape(len(expected), -1) for o in outputs], -1)
        known = expected[:, :, 1:]
        slack = 1e-3 * np.abs(expected[np.isfinite(expected)]).max(initial=1e-6)
        if np.allclose(ends, known, rtol=0, atol=slack):
            return "equal"
        holds = (ends[..., 0] <= known[..., 0] + slack) & (ends[..., 1] >= known[..., 1] - slack)
        return "wider" if holds.all() else "differs"

    def blocks(self):
        """nested before the last block, for the network's plain numbers."""
        truth = self.noisy_answers()[:20]  # linear bounds walk back for each output of each row
        np.save(self.path("numbers.npy"), truth)
        some = {name: rows[:20] for name, rows in self.rows.items()}
        if len(some) > 1:
            np.savez(self.path("some.npz"), **some)
        else:
            np.save(self.path("some.npy"), next(iter(some.values())))
        data, self.inputs = "some" + self.data[-4:], some
        for bound in ("ibp", "crown-ibp"):
            self.fcp("calibrate", "model.onnx", "--data", data, "--target", "numbers.npy",
                     "--score", "nested", "--cut", BLOCKS[self.name], "--bound", bound, "--alpha",
                     ALPHA, "--out", "block.onnx")
            self.fcp("predict", "block.onnx", "--data", data, "--alpha", ALPHA, "--out",
                     "regions.npy")
            answer, lower, upper = np.moveaxis(np.load(self.path("regions.npy")), 2, 0)
            inside = (lower <= answer) & (answer <= upper)
            covered = ((lower <= truth) & (truth <= upper)).all(1).mean()
            if not inside.all() or covered < 1 - float(ALPHA):
                raise RuntimeError(f"before the last block, {bound} covers {covered:.2f}")
            self.found["scores"].append(f"nested before the last block by {bound}")
            if bound == "ibp":
                self.export_of_block()

    def export_of_block(self):
        """Equal to predict, or refused where single precision loses the radius."""
        try:
            self.fcp("export", "block.onnx", "--alpha", ALPHA, "--out", "plain.onnx")
        except RuntimeError as error:
            if "single precision" not in str(error):
                raise
            self.found["refused"] += f"export before the last block: {str(error)[:200]} "
            return
        if self.compare_export(False) != "equal":
            raise RuntimeError("before the last block, export differs from predict")


def one(program, name, keep):
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(prefix="fcp-zoo-") as folder:
        if keep:
            folder = os.path.join(os.path.abspath(keep), name.replace("/", "_").replace(":", "_"))
            os.makedirs(folder, exist_ok=True)
        try:
            found = Trial(program, folder, name).run()
        except Exception as error:  # of the exporter, which is no fault of fcp
            text = f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}"
            found = {"name": name, "made": False, "why": text[:300]}
    print("\n" + json.dumps(found))


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))


def try_apart(program, name, keep):
    command = [sys.executable, os.path.abspath(__file__), program, "--one", name]
    command += ["--keep", keep] if keep else []
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                              preexec_fn=limit_memory, env=environment)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"name": name, "why": f"takes more than {SECONDS} s"}
    except (ValueError, IndexError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        return {"name": name, "why": last[0][:300]}


def is_good(found):
    return bool(found.get("read")) and bool(found.get("scores")) and not found.get("why")


def main():
    parser = argparse.ArgumentParser(description="Networks that others wrote, against ONNX Runtime")
    parser.add_argument("program", help="the program fcp")
    parser.add_argument("filters", nargs="*", help="parts of names; none: all networks")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--keep", help="a folder for the files made, which are used again")
    parser.add_argument("--json", help="a file that gets one line per network")
    parser.add_argument("--list", action="store_true", help="only name the networks")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    if arguments.one:
        return one(program, arguments.one, arguments.keep)
    names = [name for name in makers
             if not arguments.filters or any(part in name for part in arguments.filters)]
    if arguments.list:
        return print("\n".join(names))
    counts = {"good": 0, "bad": 0, "not made": 0, "not installed": 0}
    for name in names:
        missing = [p for p in makers[name][0] if importlib.util.find_spec(p) is None]
        if missing:
            counts["not installed"] += 1
            print(f"{name:44} left out: {', '.join(missing)} is not installed", flush=True)
            continue
        found = try_apart(program, name, arguments.keep)
        if arguments.json:
            with open(arguments.json, "a") as file:
                file.write(json.dumps(found) + "\n")
        kind = "not made" if found.get("made") is False else "good" if is_good(found) else "bad"
        counts[kind] += 1
        scores = ",".join(found.get("scores", []))
        print(f"{name:44} {kind:8} read {found.get('read') or '-':3} forward "
              f"{found.get('forward') or '-':5} {scores or '-':22} export "
              f"{found.get('export') or '-':10} {found['why']}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
