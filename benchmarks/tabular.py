"""`fcp train` beside scikit-learn, LightGBM, CatBoost and RealMLP on tables: the same folds, and of
each the error, the time to fit and the length of split-conformal intervals.

    python benchmarks/tabular.py --fcp build/release/bin/fcp --data FOLDER [--sets a,b] [--seeds 5]
                                 [--methods fcp,hgb] [--json out.json]

needs numpy, pandas and scikit-learn; lightgbm, catboost and pytabkit (RealMLP) are used where they
are installed. Sets are the files of FOLDER: NAME.npz with arrays x [N, columns] and y [N], or
NAME.csv whose last column is the target and all of whose columns are numbers; scikit-learn's
diabetes and Friedman's three functions come with it.

Folds: RandomState(seed).permutation, 40 % to train, 40 % to calibrate, 20 % to test. RMSE, MAE and
length are in units of mean |y| of the training rows; length is twice the ceil(0.9 (n + 1))-th
smallest |y - prediction| of the calibration rows. At the end each method's mean over seeds, and how
far fcp is behind the best other one.
"""

import argparse
import importlib
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np


def read_sets(folder, wanted):
    """Name and a function that gives x and y."""
    from sklearn import datasets

    sets = {
        "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
        "friedman1": lambda: datasets.make_friedman1(3000, noise=1.0, random_state=0),
        "friedman2": lambda: datasets.make_friedman2(2000, noise=50.0, random_state=0),
        "friedman3": lambda: datasets.make_friedman3(2000, noise=0.1, random_state=0),
    }
    for file in sorted(os.listdir(folder)) if folder else []:
        name, end = os.path.splitext(file)
        path = os.path.join(folder, file)
        if end == ".npz":
            sets[name] = lambda path=path: (np.load(path)["x"], np.load(path)["y"])
        elif end == ".csv":
            sets[name] = lambda path=path: read_csv(path)
    unknown = [name for name in wanted if name not in sets]
    if unknown:
        sys.exit(f"no set {', '.join(unknown)}; there are {', '.join(sets)}")
    return {name: sets[name] for name in wanted or sets}


def read_csv(path):
    import pandas

    frame = pandas.read_csv(path)
    return frame.iloc[:, :-1].to_numpy(np.float32), frame.iloc[:, -1].to_numpy(np.float32)


class Fcp:
    """`fcp train` and `fcp run` on files in a folder of its own."""

    def __init__(self, program, arguments):
        self.program = program
        self.arguments = arguments
        self.folder = tempfile.TemporaryDirectory()

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def call(self, *arguments):
        done = subprocess.run([self.program, *arguments], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"fcp {arguments[0]}: {done.stderr.strip()}")

    def fit(self, x, y):
        np.save(self.path("x.npy"), x.astype(np.float32))
        np.save(self.path("y.npy"), y.astype(np.float32))
        self.call("train", self.path("x.npy"), "--target", self.path("y.npy"), "--out",
                  self.path("m.onnx"), "--quiet", *self.arguments)

    def predict(self, x):
        np.save(self.path("new.npy"), x.astype(np.float32))
        self.call("run", self.path("m.onnx"), "--data", self.path("new.npy"), "--out",
                  self.path("p.npy"), "--quiet")
        return np.load(self.path("p.npy")).reshape(-1).astype(float)


def scaled_mlp():
    """scikit-learn's defaults, on standardised columns and target."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.neural_network import MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    network = TransformedTargetRegressor(MLPRegressor(random_state=0), transformer=StandardScaler())
    return make_pipeline(SimpleImputer(), StandardScaler(), network)


def boosting():
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(random_state=0)


def installed(module, make):
    """The peer, or nothing where its package is not installed."""
    return make if importlib.util.find_spec(module) else None


def methods(arguments):
    peers = {
        "fcp": lambda: Fcp(arguments.fcp, arguments.train),
        "hgb": boosting,
        "mlp": scaled_mlp,
        "lightgbm": installed("lightgbm", lambda: importlib.import_module("lightgbm")
                              .LGBMRegressor(verbose=-1, random_state=0)),
        "catboost": installed("catboost", lambda: importlib.import_module("catboost")
                              .CatBoostRegressor(verbose=0, random_seed=0)),
        "realmlp": installed("pytabkit", lambda: importlib.import_module("pytabkit")
                             .RealMLP_TD_Regressor(random_state=0, device="cpu")),
    }
    for name in arguments.methods:
        if name not in peers:
            sys.exit(f"no method {name}; there are {', '.join(peers)}")
    return {name: make for name, make in peers.items()
            if make and (not arguments.methods or name in arguments.methods)}


def measure(make, x, y, seed):
    order = np.random.RandomState(seed).permutation(len(y))
    share = int(0.4 * len(y))
    train, calibration, test = order[:share], order[share:2 * share], order[2 * share:]
    unit = np.abs(y[train]).mean()
    method = make()
    start = time.perf_counter()
    method.fit(x[train], y[train])
    seconds = time.perf_counter() - start
    error = y[test] - np.asarray(method.predict(x[test])).reshape(-1)
    scores = np.sort(np.abs(y[calibration] - np.asarray(method.predict(x[calibration])).reshape(-1)))
    rank = math.ceil(0.9 * (len(scores) + 1))
    radius = scores[rank - 1] if rank <= len(scores) else math.inf
    return {"rmse": float(np.sqrt(np.mean(error**2)) / unit),
            "mae": float(np.mean(np.abs(error)) / unit),
            "length": float(2 * radius / unit),
            "coverage": float(np.mean(np.abs(error) <= radius)),
            "seconds": seconds}


def mean_of(results, name, method, what):
    return float(np.mean([r[what] for r in results if r["set"] == name and r["method"] == method]))


def print_table(results, sets, names):
    print(f"{'set':24} {'method':10} {'RMSE':>9} {'MAE':>9} {'length':>9} {'coverage':>9} {'fit s':>8}")
    for name in sets:
        for method in names:
            row = [mean_of(results, name, method, what)
                   for what in ("rmse", "mae", "length", "coverage", "seconds")]
            print(f"{name:24} {method:10} {row[0]:9.4g} {row[1]:9.4g} {row[2]:9.4g} {row[3]:9.3f} "
                  f"{row[4]:8.2f}")


def print_summary(results, sets, names):
    others = [method for method in names if method != "fcp"]
    if "fcp" not in names or not others:
        return
    ratios = {name: mean_of(results, name, "fcp", "rmse")
              / min(mean_of(results, name, method, "rmse") for method in others) for name in sets}
    values = list(ratios.values())
    print(f"\nRMSE of fcp over that of the best other method: at most 1.03 on "
          f"{sum(v <= 1.03 for v in values)} of {len(values)} sets, at most 1.10 on "
          f"{sum(v <= 1.10 for v in values)}; geometric mean {np.exp(np.mean(np.log(values))):.3f}, "
          f"largest {max(values):.3f} ({max(ratios, key=ratios.get)})")
    if "mlp" in names:
        behind = [name for name in sets if mean_of(results, name, "fcp", "rmse")
                  > mean_of(results, name, "mlp", "rmse")]
        print(f"sets on which it is behind scikit-learn's MLP: {', '.join(behind) or 'none'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fcp", default="build/release/bin/fcp", help="the program")
    parser.add_argument("--data", default="", help="folder of .npz and .csv files")
    parser.add_argument("--sets", default="", help="only these, with commas between")
    parser.add_argument("--methods", default="", help="only these, with commas between")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--train", default="", help="more arguments of fcp train, in one string")
    parser.add_argument("--json", default="", help="file for all numbers")
    arguments = parser.parse_args()
    arguments.methods = [name for name in arguments.methods.split(",") if name]
    arguments.train = arguments.train.split()
    warnings.filterwarnings("ignore")  # peers say that they have not converged

    sets = read_sets(arguments.data, [name for name in arguments.sets.split(",") if name])
    chosen = methods(arguments)
    results = []
    for name, read in sets.items():
        x, y = read()
        x, y = np.asarray(x, np.float32), np.asarray(y, np.float64).reshape(-1)
        for method, make in chosen.items():
            for seed in range(arguments.seeds):
                found = measure(make, x, y, seed)
                results.append({"set": name, "method": method, "seed": seed, **found})
                print(f"{name} {method} seed {seed}: RMSE {found['rmse']:.4g}, "
                      f"{found['seconds']:.1f} s", file=sys.stderr)
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(results, file, indent=1)
    print_table(results, sets, chosen)
    print_summary(results, sets, chosen)


if __name__ == "__main__":
    main()
