"""Length, coverage and worst slab of 90 % intervals on tables: `fcp train` with `--score auto` and
with each score by itself, beside split and CQR over gradient boosting (MAPIE), R2CCP and CHR's rule.

    python benchmarks/intervals.py --fcp build/release/bin/fcp --data FOLDER [--sets bike,bio]
        [--seeds 5] [--workers 4] [--methods fcp,peers] [--json out.json] [--markdown out.md]
        [--merge other.json] [--times]

needs numpy. Peers need scikit-learn; mapie and R2CCP (PyPI) are used where they are installed, and
what is missing is said and left out: run `--methods peers` where they are, and `--merge` its JSON.
Sets are the paper's, from their raw files in FOLDER or FOLDER/tabular (community, star, bio, bike,
facebook1, blog, meps21), and every NAME.npz of FOLDER with arrays x [N, columns] and y [N].

Folds: RandomState(seed).permutation, 40 % to train, 40 % to calibrate, 20 % to test, the same for
all methods. Length is the mean over test rows in units of mean |y| of the training rows. WSC is the
coverage of the worst slab (fcp/evaluate/measures/conditional.h); peers by the same definition. Each set and
seed is a cell; `--workers` cells run side by side, with as many threads each as cores allow.
`--times` adds the time of one-row predictions beside `nested`, and of fitting heads on 20,000 rows
of 512 features.
"""

import argparse
import concurrent.futures
import csv
import datetime
import gzip
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

ALPHA = 0.1
SETS = ("community", "star", "bio", "bike", "facebook1", "blog", "meps21")
SCORES = {  # the name of a method, and what `fcp calibrate` is told
    "auto": (),
    "split": ("--score", "residual"),
    "linearized": ("--score", "linearized", "--cut", "auto"),
    "spread": ("--score", "spread"),
    "nested": ("--score", "nested", "--cut", "auto"),
    "quantiles": ("--score", "quantiles"),
    "density": ("--score", "density"),
    "union": ("--score", "density", "--union"),
    "rectified": ("--calibration", "rectified"),
    "rectified split": ("--score", "residual", "--calibration", "rectified"),
}


# Data.


def open_text(folder, name):
    for path in (os.path.join(folder, name), os.path.join(folder, "tabular", name)):
        if os.path.exists(path):
            return gzip.open(path, "rt") if name.endswith(".gz") else open(path, encoding="utf-8")
    raise FileNotFoundError(f"{name}: expected in {folder} or its folder tabular, not found")


def read_numbers(folder, name, header):
    with open_text(folder, name) as file:
        names = next(file).strip().split(",") if header else None
        return names, np.genfromtxt(file, delimiter=",", dtype=np.float64)


def read_community(folder):
    with open_text(folder, "communities_attributes.csv") as file:
        names = [row["attributes"].strip() for row in csv.DictReader(file)]
    with open_text(folder, "communities.data") as file:
        rows = list(csv.reader(file))
    columns = []
    for name, column in zip(names, zip(*rows)):
        if name in ("state", "county", "community", "communityname", "fold"):
            continue
        values = np.array([float("nan") if cell == "?" else float(cell) for cell in column])
        if name == "OtherPerCap":
            values = np.where(np.isnan(values), np.nanmean(values), values)
        if not np.isnan(values).any():
            columns.append(values)
    table = np.stack(columns, axis=1)
    return table[:, :100], table[:, 100]


def read_star(folder):
    with open_text(folder, "STAR.csv") as file:
        rows = [row for row in csv.DictReader(file) if "NA" not in row.values()]
    scores = [kind + grade for grade in "k123" for kind in ("read", "math")]
    y = np.array([sum(float(row[name]) for name in scores) for row in rows])
    columns = []
    for name in list(rows[0])[:8] + list(rows[0])[17:]:
        cells = [row[name] for row in rows]
        try:
            columns.append([float(cell) for cell in cells])
        except ValueError:  # words: their places in the alphabet
            places = {word: i for i, word in enumerate(sorted(set(cells)))}
            columns.append([places[cell] for cell in cells])
    return np.array(columns).T, y


def read_bike(folder):
    x, y = [], []
    with open_text(folder, "bike_train.csv") as file:
        for row in csv.DictReader(file):
            when = datetime.datetime.strptime(row["datetime"], "%Y-%m-%d %H:%M:%S")
            one_hot = [float(row["season"] == str(i)) for i in range(1, 5)]
            one_hot += [float(row["weather"] == str(i)) for i in range(1, 5)]
            names = ("holiday", "workingday", "temp", "atemp", "humidity", "windspeed")
            x.append(one_hot + [when.hour, when.weekday(), when.month, when.year - 2011]
                     + [float(row[name]) for name in names])  # fmt: skip
            y.append(float(row["count"]))
    return np.array(x), np.array(y)


def read_set(folder, name):
    path = os.path.join(folder, name + ".npz")
    if os.path.exists(path):
        arrays = np.load(path)
        x, y = arrays["x"], arrays["y"]
    elif name == "community":
        x, y = read_community(folder)
    elif name == "star":
        x, y = read_star(folder)
    elif name == "bike":
        x, y = read_bike(folder)
    elif name == "bio":
        table = read_numbers(folder, "CASP.csv", True)[1]
        x, y = table[:, 1:], table[:, 0]
    elif name == "meps21":
        names, table = read_numbers(folder, "meps_21_reg_rebuilt.csv", True)
        at = names.index("UTILIZATION_reg")
        x, y = np.delete(table, at, axis=1), table[:, at]
    else:
        file = {"facebook1": "Features_Variant_1.csv.gz", "blog": "blogData_train.csv.gz"}[name]
        table = read_numbers(folder, file, False)[1]
        x, y = table[:, :-1], table[:, -1]
    return x.astype(np.float32), np.asarray(y, np.float32).reshape(-1)


class Folds:
    def __init__(self, x, y, seed):
        order = np.random.RandomState(seed).permutation(len(y))
        share = int(0.4 * len(y))
        parts = order[:share], order[share:2 * share], order[2 * share:]
        self.x, self.y = [x[part] for part in parts], [y[part].astype(float) for part in parts]
        self.unit = np.abs(self.y[0]).mean()


# Measures of peers.


def worst_slab(x, covered, seed, directions=1000, share=0.1):
    """As fcp measures it: found on one half, measured on the other, both ways round."""
    random = np.random.RandomState(seed)
    x = np.nan_to_num((x - np.nanmean(x, axis=0)) / (np.nanstd(x, axis=0) + 1e-12))
    if len(x) > 5000:
        some = random.permutation(len(x))[:5000]
        x, covered = x[some], covered[some]
    order, half, hits, rows = random.permutation(len(x)), len(x) // 2, 0, 0
    for first, second in ((order[:half], order[half:]), (order[half:], order[:half])):
        least, best = max(2, int(share * len(first))), (2.0, None)
        for _ in range(directions):
            u = random.normal(size=x.shape[1])
            along = x[first] @ (u / np.linalg.norm(u))
            sort = np.argsort(along, kind="stable")
            sums = np.concatenate([[0], np.cumsum(covered[first][sort])])
            for width in np.unique(np.linspace(least, 2 * least, 20).astype(int)):
                means = (sums[width:] - sums[:-width]) / width
                at = int(np.argmin(means))
                if means[at] < best[0]:
                    ends = along[sort[at]], along[sort[at + width - 1]]
                    best = means[at], (u / np.linalg.norm(u), *ends)
        u, low, high = best[1]
        inside = (x[second] @ u >= low) & (x[second] @ u <= high)
        hits, rows = hits + covered[second][inside].sum(), rows + inside.sum()
    return float(hits / max(1, rows))


def measured(folds, lower, upper, seed, parts=None):
    """`parts`: of unions, the summed lengths and whether each row is covered."""
    covered = (lower <= folds.y[2]) & (folds.y[2] <= upper) if parts is None else parts[1]
    lengths = np.maximum(upper - lower, 0) if parts is None else parts[0]
    return {"length": float(lengths.mean() / folds.unit), "coverage": float(covered.mean()),
            "wsc": worst_slab(folds.x[2].astype(float), covered, seed)}  # fmt: skip


def conformal_quantile(scores):
    rank = math.ceil(round((1 - ALPHA) * (len(scores) + 1), 9))
    return np.sort(scores)[rank - 1] if rank <= len(scores) else math.inf


# fcp.


class Fcp:
    def __init__(self, program, threads, folder):
        self.program, self.threads, self.folder = program, threads, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def call(self, *arguments):
        start = time.perf_counter()
        command = [self.program, *map(str, arguments), "--threads", str(self.threads), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"fcp {arguments[0]}: {done.stderr.strip()}")
        return done.stdout, time.perf_counter() - start

    def rows(self, name):
        return "--data", self.path(name + "_x.npy"), "--target", self.path(name + "_y.npy")

    def write(self, folds):
        for name, x, y in zip(("train", "cal", "test"), folds.x, folds.y):
            np.save(self.path(name + "_x.npy"), x)
            np.save(self.path(name + "_y.npy"), y.astype(np.float32))

    def train(self, out, seed, *more):
        return self.call("train", self.path("train_x.npy"), "--target", self.path("train_y.npy"),
                         "--seed", seed, "--out", self.path(out), *more)[1]  # fmt: skip

    def calibrated(self, model, options, seed, unit):
        text, seconds = self.call("calibrate", self.path(model), *self.rows("cal"), "--seed", seed,
                                  "--json", "--out", self.path("c.onnx"), *options)  # fmt: skip
        found = json.loads(self.call("evaluate", self.path("c.onnx"), *self.rows("test"),
                                     "--json")[0])  # fmt: skip
        return {"length": float(found["length"]) / unit,  # "inf" where one is infinite
                "coverage": found["coverage"],
                "wsc": found["conditional"]["worst_slab"]["coverage"],
                "chosen": json.loads(text)["score"], "seconds": seconds}  # fmt: skip

    def run(self, model, rows, to=None):
        self.call("run", self.path(model), "--data", self.path(rows + "_x.npy"), "--out",
                  self.path("out.npy"), *(("--to", to) if to else ()))  # fmt: skip
        return np.load(self.path("out.npy")).reshape(len(np.load(self.path(rows + "_x.npy"))), -1)


def chr_steps(quantiles, start):
    """CHR's nested sequence on a grid of quantiles: the shortest window of `start` gaps, grown by the
    shorter and shrunk by the longer outer gap. Ends [N, gaps + 1] by the number of gaps."""
    rows, count = quantiles.shape
    gaps = count - 1
    at = np.argmin(quantiles[:, start:] - quantiles[:, :count - start], axis=1)
    low, high, each = [None] * (gaps + 1), [None] * (gaps + 1), np.arange(rows)
    low[start], high[start] = at, at + start
    for k in range(start + 1, gaps + 1):
        left, right = low[k - 1], high[k - 1]
        below = np.where(left > 0, quantiles[each, left] - quantiles[each, left - 1], np.inf)
        above = np.where(right < gaps, quantiles[each, np.minimum(right + 1, gaps)]
                         - quantiles[each, right], np.inf)  # fmt: skip
        down = below <= above
        low[k], high[k] = left - down, right + ~down
    for k in range(start - 1, -1, -1):
        left, right = low[k + 1], high[k + 1]
        drop = (quantiles[each, left + 1] - quantiles[each, left]
                > quantiles[each, right] - quantiles[each, right - 1])  # fmt: skip
        low[k], high[k] = left + drop, right - ~drop
    ends = [np.stack([quantiles[each, index] for index in side], axis=1) for side in (low, high)]
    return ends[0], ends[1]


def chr_rule(program, model, folds, seed):
    """CHR's rule on the quantiles that fcp's heads learned, so that only the rule differs."""
    ends = {}
    for name, y in zip(("cal", "test"), folds.y[1:]):
        grid = program.run(model, name, "fcp.quantiles").astype(float)
        center = program.run(model, name).astype(float)[:, :1]
        start = round((1 - ALPHA) * (grid.shape[1] + 1)) - 1
        ends[name] = chr_steps(np.sort(grid, axis=1) + center, start)
        inside = (ends[name][0] <= y[:, None]) & (y[:, None] <= ends[name][1])
        steps = np.where(inside.any(axis=1), inside.argmax(axis=1), inside.shape[1])
        if name == "cal":
            radius = conformal_quantile(steps.astype(float))
    lower, upper = ends["test"]
    if radius >= lower.shape[1]:
        return measured(folds, np.full(len(lower), -np.inf), np.full(len(lower), np.inf), seed)
    return measured(folds, lower[:, int(radius)], upper[:, int(radius)], seed)


def fcp_cell(program, folds, seed):
    """Each method with what measures it."""
    program.write(folds)
    trained = {"train_seconds": program.train("m.onnx", seed)}
    for method, options in SCORES.items():
        yield method, lambda options=options: {
            **program.calibrated("m.onnx", options, seed, folds.unit), **trained}  # fmt: skip
    yield "CHR's rule", lambda: chr_rule(program, "m.onnx", folds, seed)

    def quantile_network():
        program.train("q.onnx", seed, "--loss", "quantile")
        return program.calibrated("q.onnx", ("--score", "cqr"), seed, folds.unit)

    yield "cqr", quantile_network


# Peers.


def boosting(folds, seed):
    from sklearn.ensemble import HistGradientBoostingRegressor

    def fitted(**options):
        model = HistGradientBoostingRegressor(random_state=seed, **options)
        return model.fit(folds.x[0], folds.y[0])

    mean = fitted()
    low, high, middle = (fitted(loss="quantile", quantile=q) for q in (ALPHA / 2, 1 - ALPHA / 2, 0.5))
    if importlib.util.find_spec("mapie"):
        from mapie.regression import ConformalizedQuantileRegressor, SplitConformalRegressor

        split = SplitConformalRegressor(mean, confidence_level=1 - ALPHA, prefit=True)
        cqr = ConformalizedQuantileRegressor([low, high, middle], confidence_level=1 - ALPHA,
                                             prefit=True)  # fmt: skip
        for name, method in (("boosting split", split), ("boosting CQR", cqr)):
            method.conformalize(folds.x[1], folds.y[1])
            ends = method.predict_interval(folds.x[2])[1]
            found = measured(folds, ends[:, 0, 0], ends[:, 1, 0], seed)
            yield name, lambda found=found: {**found, "by": "MAPIE"}
        return
    radius = conformal_quantile(np.abs(folds.y[1] - mean.predict(folds.x[1])))
    center = mean.predict(folds.x[2])
    yield "boosting split", lambda: measured(folds, center - radius, center + radius, seed)
    ends = low.predict(folds.x[1]), high.predict(folds.x[1])
    moved = conformal_quantile(np.maximum(ends[0] - folds.y[1], folds.y[1] - ends[1]))
    yield "boosting CQR", lambda: measured(folds, low.predict(folds.x[2]) - moved,
                                           high.predict(folds.x[2]) + moved, seed)  # fmt: skip


def r2ccp(folds, seed, folder):
    """It splits off its own calibration rows: half of training and calibration rows together."""
    from R2CCP.main import R2CCP

    model = R2CCP({"model_path": os.path.join(folder, "r2ccp.pth"), "max_epochs": 100,
                   "alpha": ALPHA, "cal_size": 0.5, "seed": seed})  # fmt: skip
    model.fit(np.concatenate(folds.x[:2]), np.concatenate(folds.y[:2]) / folds.unit)
    unions = model.get_intervals(folds.x[2])
    y = folds.y[2] / folds.unit
    lengths = np.array([sum(high - low for low, high in union) for union in unions]) * folds.unit
    covered = np.array([any(low <= one <= high for low, high in union)
                        for one, union in zip(y, unions)])  # fmt: skip
    return measured(folds, None, None, seed, (lengths, covered))


def peer_cell(folds, seed, folder):
    if importlib.util.find_spec("sklearn"):
        yield from boosting(folds, seed)
    if importlib.util.find_spec("R2CCP"):
        yield "R2CCP", lambda: r2ccp(folds, seed, folder)


# Cells and tables.


def run_cell(arguments, name, seed):
    warnings.filterwarnings("ignore")
    folds = Folds(*read_set(arguments.data, name), seed)
    results, failures = [], []
    with tempfile.TemporaryDirectory() as folder:
        program = Fcp(arguments.fcp, arguments.threads, folder)
        cells = {"fcp": lambda: fcp_cell(program, folds, seed),
                 "peers": lambda: peer_cell(folds, seed, folder)}  # fmt: skip
        for kind in arguments.methods:
            for method, measure in cells[kind]():
                try:
                    results.append({"set": name, "seed": seed, "method": method, **measure()})
                except Exception as error:  # one method must not take the others with it
                    failures.append(f"{name}, seed {seed}, {method}: {error}")
    return results, failures


def markdown(results, what, title, digits):
    sets = [name for name in dict.fromkeys(r["set"] for r in results)]
    names = [name for name in dict.fromkeys(r["method"] for r in results)]
    lines = [f"{title}", "", "| set | seeds | " + " | ".join(names) + " |",
             "|---" * (len(names) + 2) + "|"]  # fmt: skip
    for name in sets:
        cells = []
        for method in names:
            found = [r[what] for r in results if r["set"] == name and r["method"] == method]
            cells.append("" if not found else f"{np.mean(found):.{digits}f}" if len(found) == 1
                         else f"{np.mean(found):.{digits}f} ± {np.std(found, ddof=1):.{digits}f}")
        seeds = len({r["seed"] for r in results if r["set"] == name})
        lines.append(f"| {name} | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def chosen_table(results):
    lines = ["Scores chosen by auto, and its length over that of the shortest single score", "",
             "| set | chosen | ratio |", "|---|---|---|"]  # fmt: skip
    single = [name for name in SCORES if name not in ("auto", "union") and "rect" not in name]
    for name in dict.fromkeys(r["set"] for r in results):
        mine = [r for r in results if r["set"] == name]
        lengths = {m: np.mean([r["length"] for r in mine if r["method"] == m])
                   for m in (*single, "auto") if any(r["method"] == m for r in mine)}  # fmt: skip
        if len(lengths) < 2 or "auto" not in lengths:
            continue
        best = min(value for method, value in lengths.items() if method != "auto")
        chosen = ", ".join(r["chosen"] for r in mine if r["method"] == "auto")
        lines.append(f"| {name} | {chosen} | {lengths['auto'] / best:.3f} |")
    return "\n".join(lines) + "\n"


def times(arguments):
    """One-row predictions beside nested, and fitting heads, in seconds."""
    random = np.random.RandomState(0)
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Fcp(arguments.fcp, arguments.threads, folder)
        x = random.normal(size=(6000, 20)).astype(np.float32)
        y = x[:, 0] + np.exp(0.5 * x[:, 1]) * random.normal(size=6000)
        program.write(Folds(x, y, 0))
        program.train("m.onnx", 0, "--epochs", 5)
        np.save(program.path("one_x.npy"), x[:1])
        for score in ("nested", "spread", "quantiles", "density"):
            program.call("calibrate", program.path("m.onnx"), *program.rows("cal"), "--score",
                         score, "--out", program.path("c.onnx"))  # fmt: skip

            def predict(rows):
                return min(program.call("predict", program.path("c.onnx"), "--data",
                                        program.path(rows), "--batch", 1, "--out",
                                        program.path("i.npy"))[1] for _ in range(3))  # fmt: skip

            found[f"one row, {score}"] = (predict("test_x.npy") - predict("one_x.npy")) / 1199
        rows = 66_700  # three tenths of them are 20,000
        x = random.normal(size=(rows, 512)).astype(np.float32)
        np.save(program.path("cal_x.npy"), x)
        np.save(program.path("cal_y.npy"), (x[:, 0] + random.normal(size=rows)).astype(np.float32))
        np.save(program.path("train_x.npy"), x[:2000])
        np.save(program.path("train_y.npy"), x[:2000, 0])
        program.train("big.onnx", 0, "--recipe", "paper", "--layers", "512,512", "--epochs", 1)
        for score in ("residual", "spread"):
            found[f"calibrate, {score}"] = program.call(
                "calibrate", program.path("big.onnx"), *program.rows("cal"), "--score", score,
                "--allow-training-rows", "--out", program.path("c.onnx"))[1]  # fmt: skip
    found["heads, 20,000 x 512"] = found["calibrate, spread"] - found["calibrate, residual"]
    return found


def read_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fcp", default="build/release/bin/fcp", help="the program")
    parser.add_argument("--data", default=os.environ.get("FCP_DATA_DIR", ""), help="folder")
    parser.add_argument("--sets", default=",".join(SETS), help="with commas between")
    parser.add_argument("--seeds", default="5", help="how many, or a list as 0,3,4")
    parser.add_argument("--methods", default="fcp,peers", help="fcp, peers or both")
    parser.add_argument("--workers", type=int, default=1, help="cells at a time")
    parser.add_argument("--threads", type=int, default=0, help="of each cell; 0: by the cores")
    parser.add_argument("--merge", default="", help="JSON of other runs, with commas between")
    parser.add_argument("--times", action="store_true", help="measure times as well")
    parser.add_argument("--json", default="", help="file for all numbers")
    parser.add_argument("--markdown", default="", help="file for the tables; else standard output")
    arguments = parser.parse_args()
    arguments.sets = [name for name in arguments.sets.split(",") if name]
    listed = [int(seed) for seed in arguments.seeds.split(",")]
    arguments.seeds = listed if "," in arguments.seeds else list(range(listed[0]))
    arguments.methods = arguments.methods.split(",")
    arguments.threads = arguments.threads or max(1, (os.cpu_count() or 1) // arguments.workers)
    return arguments


def main():
    arguments = read_arguments()
    for module in ("sklearn", "mapie", "R2CCP"):
        if "peers" in arguments.methods and not importlib.util.find_spec(module):
            print(f"{module} is not installed: what needs it is left out", file=sys.stderr)
    results, failures = [], []
    for path in filter(None, arguments.merge.split(",")):
        with open(path, encoding="utf-8") as file:
            results += json.load(file)["results"]
    found = {"results": results, "failures": failures, "times": {}}

    def save():
        if arguments.json:
            with open(arguments.json, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)

    with concurrent.futures.ProcessPoolExecutor(arguments.workers) as pool:
        cells = {pool.submit(run_cell, arguments, name, seed): (name, seed)
                 for name in arguments.sets for seed in arguments.seeds}  # fmt: skip
        for cell in concurrent.futures.as_completed(cells):
            more, failed = cell.result()
            results += more
            failures += failed
            print(f"{cells[cell]}: {len(more)} results", *failed, sep="\n", file=sys.stderr)
            save()
    results.sort(key=lambda r: (SETS.index(r["set"]) if r["set"] in SETS else 99, r["seed"]))
    if arguments.times:
        found["times"] = times(arguments)
    save()
    tables = [markdown(results, "length", "Length, in units of mean |y|", 3),
              markdown(results, "coverage", "Coverage", 3),
              markdown(results, "wsc", "Coverage of the worst slab", 3), chosen_table(results)]
    tables += [f"{name}: {value:.4g} s\n" for name, value in found["times"].items()]
    if arguments.markdown:
        with open(arguments.markdown, "w", encoding="utf-8") as file:
            file.write("\n".join(tables))
    else:
        print("\n".join(tables))


if __name__ == "__main__":
    main()
