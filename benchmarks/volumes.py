"""Regions for several targets at once: boxes, one ellipsoid for all rows, and one per row.

    python benchmarks/volumes.py bias.npz house.npz [--seeds 1] [--rows 0] [--mapie] [--program PATH]

Each file holds X [N, D] and Y [N, K], as the processed sets of Minimum Volume Conformal Sets
(github.com/ElSacho/MVCS, data/processed_data) do. As there, rows are dealt 7 : 1 : 1 : 1 at random
and each target is made normal by the ranks of its training rows, so that volumes of different sets
compare. One network per seed (`fcp train`); its heads are learned out of fold on the training rows.
The second part gives the covariance for all rows and nothing else, the third part calibrates all
methods, the last one tests them. A volume is that of a row's region to the power 1/K, the mean over
test rows; coverage is that of all targets at once, at alpha = 0.1. With --mapie the score of MAPIE
(MultivariateResidualNormalisedScore, its defaults) learns a covariance per row from the errors of
the same network on the second part; it has no interface for the rest, which is done here. Needs
numpy and scikit-learn; for --mapie mapie and torch from PyPI.
"""

import argparse
import json
import math
import os
import subprocess
import tempfile

import numpy as np
from sklearn.preprocessing import QuantileTransformer

ALPHA = 0.1
METHODS = {
    "box": ["--joint", "all", "--score", "residual"],
    "box per row": ["--joint", "all", "--score", "spread"],
    "ellipsoid per row": ["--joint", "volume"],
    "auto": ["--joint", "auto"],
}


def parts_of(path, seed, rows):
    """Training, covariance, calibration and test rows."""
    with np.load(path) as data:
        x, y = data["X"].astype(np.float32), data["Y"].astype(np.float32)
    order = np.random.default_rng(seed).permutation(len(x))[: rows or len(x)]
    ends = [0, *(int(share * len(order)) for share in (0.7, 0.8, 0.9)), len(order)]
    parts = [order[a:b] for a, b in zip(ends, ends[1:])]
    ranks = QuantileTransformer(output_distribution="normal", random_state=0).fit(y[parts[0]])
    return [(x[part], ranks.transform(y[part]).astype(np.float32)) for part in parts]


def run(program, folder, *arguments):
    done = subprocess.run([program, *arguments], cwd=folder, capture_output=True, text=True,
                          check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: {done.stderr}")
    return done.stdout


def errors_of(program, folder, truths):
    """Of the network on the three parts that it was not trained on."""
    errors = []
    for part in ("covariance", "calibration", "test"):
        run(program, folder, "predict", "box.onnx", "--data", f"x_{part}.npy", "--out",
            "answer.npy", "--quiet")
        errors.append(truths[part] - np.load(os.path.join(folder, "answer.npy"))[:, :, 0])
    return errors


def ellipsoids(factors, errors):
    """Volume and coverage; factors and errors of calibration and test rows."""
    norms = [np.linalg.norm(np.linalg.solve(factor, error[:, :, None])[:, :, 0], axis=1)
             for factor, error in zip(factors, errors)]
    rank = math.ceil((1 - ALPHA) * (len(norms[0]) + 1))
    radius = np.sort(norms[0])[rank - 1]
    width = errors[0].shape[1]
    ball = (math.pi ** (width / 2) / math.gamma(width / 2 + 1)) ** (1 / width)
    diagonal = np.diagonal(factors[1], axis1=1, axis2=2)
    return ball * radius * np.exp(np.log(diagonal).mean(1)).mean(), np.mean(norms[1] <= radius)


def one_ellipsoid(errors):
    """One covariance for all rows, of errors on rows of their own."""
    factor = np.linalg.cholesky(np.cov(errors[0].T))
    return ellipsoids([np.broadcast_to(factor, (len(one), *factor.shape)) for one in errors[1:]],
                      errors[1:])


def by_mapie(folder, errors):
    """A covariance per row as MAPIE learns it, around the same predictions."""
    import torch
    from mapie.experimental.conformity_scores.bounds import MultivariateResidualNormalisedScore
    from sklearn.preprocessing import StandardScaler
    torch.manual_seed(0)
    rows = [np.load(os.path.join(folder, f"x_{part}.npy"))
            for part in ("covariance", "calibration", "test")]
    scale = StandardScaler().fit(rows[0])
    rows = [scale.transform(one).astype(np.float32) for one in rows]
    score = MultivariateResidualNormalisedScore(
        center_model=lambda x: torch.zeros(len(x), errors[0].shape[1]))
    score.fit(rows[0], errors[0].astype(np.float32))
    return ellipsoids([np.linalg.cholesky(score.covariance_estimator_.get_covariance_matrix(one))
                       for one in rows[1:]], errors[1:])


def measure(program, path, seed, rows, mapie):
    names = ("train", "covariance", "calibration", "test")
    found = {}
    with tempfile.TemporaryDirectory(prefix="fcp-volumes-") as folder:
        truths = {}
        for name, (x, y) in zip(names, parts_of(path, seed, rows)):
            np.save(os.path.join(folder, f"x_{name}.npy"), x)
            np.save(os.path.join(folder, f"y_{name}.npy"), y)
            truths[name] = y
        run(program, folder, "train", "x_train.npy", "--target", "y_train.npy", "--out", "net.onnx",
            "--seed", str(seed), "--quiet")
        for method, flags in METHODS.items():
            made = method.replace(" ", "_") + ".onnx"
            run(program, folder, "calibrate", "net.onnx", "--data", "x_calibration.npy", "--target",
                "y_calibration.npy", *flags, "--out", made, "--quiet")
            told = json.loads(run(program, folder, "evaluate", made, "--data", "x_test.npy",
                                  "--target", "y_test.npy", "--alpha", str(ALPHA), "--json",
                                  "--quiet"))
            main = told["methods"][0] if "methods" in told else told
            found[method] = main["volume_per_dimension"], main["joint_coverage"]
        errors = errors_of(program, folder, truths)
        found["one ellipsoid"] = one_ellipsoid(errors)
        if mapie:
            found["MAPIE, per row"] = by_mapie(folder, errors)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=0, help="at most; 0: all")
    parser.add_argument("--mapie", action="store_true")
    parser.add_argument("--program", default="build/release/bin/fcp")
    given = parser.parse_args()
    program = os.path.abspath(given.program)
    columns = ["box", "box per row", "one ellipsoid", "ellipsoid per row", "auto"]
    columns += ["MAPIE, per row"] if given.mapie else []
    print("| set | " + " | ".join(columns) + " |\n|" + "---|" * (len(columns) + 1))
    for path in given.files:
        runs = [measure(program, path, seed, given.rows, given.mapie)
                for seed in range(given.seeds)]
        cells = []
        for column in columns:
            volume, coverage = np.mean([run[column] for run in runs], axis=0)
            cells.append(f"{volume:.3f} ({100 * coverage:.1f} %)")
        name = os.path.splitext(os.path.basename(path))[0]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
