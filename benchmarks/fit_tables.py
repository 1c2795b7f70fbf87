"""`fcp fit` on tables as people have them, beside gradient boosting with split conformal prediction
by MAPIE on the tables that scikit-learn brings, and beside four pipelines of gradient boosting
(boosting.py) on tables of your own.

    python benchmarks/fit_tables.py build/release/bin/fcp [--seeds 3] [--folder tables]
    python benchmarks/fit_tables.py build/release/bin/fcp --table price=diamonds.csv [--rows 4000]

needs scikit-learn and mapie from PyPI. Ten messy files are made and fitted by one command each: what
must come is a predictor, or one line with every problem and its cure. The predictor then answers 20
new rows, among them a category that it has not seen. Then, for each seed, a fifth of each of
scikit-learn's tables is put aside, and both are judged on it. Of the rest fcp trains and calibrates
on 98 % (2 % are the test rows that every fit has): numbers below 1,000 rows by cross-fitting, as
`fcp fit` does by itself, otherwise 3 : 1. MAPIE trains on three quarters and calibrates on one, and
for numbers stands there a second time with CV+ in ten folds over all rows. MAPIE's sets are LAC's,
which are the smallest on average.

With `--table TARGET=FILE.csv`, which may be given several times, nothing but these tables runs: a
fifth of the rows, drawn by the seed, tests; of the rest fcp trains and calibrates on 98 % and the
pipelines on all, 70 % to train and 30 % to calibrate. `--rows` takes so many rows at random first.
Figures are means over the seeds, those of fcp with the coverage of the worst slab and the coverage
gap that `evaluate` tells. Needs pandas, scikit-learn and lightgbm.
"""

import argparse
import csv
import datetime
import json
import os
import random
import resource
import subprocess
import tempfile
import time

import numpy as np

ALPHA = 0.1


# Ten messy files.


def homes(count, seed=0):
    """Rows of a table with a date, a category, a size, a flag, a code and a price."""
    chance = random.Random(seed)
    start = datetime.date(2021, 1, 1)
    for i in range(count):
        size = chance.uniform(20, 200)
        kind = chance.choice(["flat", "house", "loft", "barn"])
        day = chance.randrange(1000)
        price = (2 + day / 1000) * size + 40 * len(kind) + chance.gauss(0, 3 + size / 10)
        yield {"id": f"H{i:06d}", "sold": start + datetime.timedelta(days=day), "kind": kind,
               "size": size, "lift": chance.random() < 0.5, "price": price}


def write(path, rows, separator=",", encoding="utf-8", header=None):
    rows = list(rows)
    with open(path, "w", newline="", encoding=encoding) as file:
        writer = csv.writer(file, delimiter=separator)
        writer.writerow(header or rows[0])
        writer.writerows(row.values() for row in rows)


def changed(rows, **changes):
    for i, row in enumerate(rows):
        yield {name: changes[name](value, i) if name in changes else value
               for name, value in row.items()}


def comma(value, _):
    return f"{value:.2f}".replace(".", ",")


def messy_files(folder, large_rows):
    """Name, what is odd about it, and the target."""
    chance = random.Random(9)

    def missing(value, _):
        return "" if chance.random() < 0.1 else value

    def path(name):
        return os.path.join(folder, name + ".csv")

    write(path("bom"), homes(1500), encoding="utf-8-sig")
    write(path("semicolon"), homes(1500), separator=";")
    write(path("decimal_comma"), changed(homes(1500), size=comma, price=comma), separator=";")
    write(path("dates"), changed(homes(1500), sold=lambda day, _: day.strftime("%d/%m/%Y %H:%M")))
    write(path("ids"), ({"": i, "user_id": 10_000 + 7 * i, **row}
                        for i, row in enumerate(homes(1500))))
    write(path("rare_kinds"), changed(homes(1500), kind=lambda kind, i:
                                      f"odd {i}" if i % 100 == 0 else kind))
    write(path("missing"), changed(homes(1500), size=missing, kind=missing, price=missing))
    write(path("duplicated_header"), homes(1500),
          header=["id", "sold", "kind", "size", "size", "price"])
    write(path("thirty_rows"), homes(30))
    names = ["bom", "semicolon", "decimal_comma", "dates", "ids", "rare_kinds", "missing",
             "duplicated_header", "thirty_rows"]
    if large_rows > 0:
        write(path("large"), homes(large_rows))
        names.append("large")
    return names


def run_fit(program, data, target, out, *options):
    start = time.time()
    done = subprocess.run([program, "fit", data, "--target", target, "--out", out, "--json", *options],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done, time.time() - start


def answer_new_rows(program, folder, name):
    """20 rows as the file has them, without the target, one with an unknown kind."""
    with open(os.path.join(folder, name + ".csv"), encoding="utf-8-sig") as file:
        text = file.read().splitlines()[:21]
    separator = ";" if ";" in text[0] else ","
    rows = [line.split(separator) for line in text]
    rows[1][rows[0].index("kind")] = "igloo"
    new = os.path.join(folder, name + ".new.csv")
    with open(new, "w", encoding="utf-8") as file:
        file.writelines(separator.join(row[:-1]) + "\n" for row in rows)
    done = subprocess.run([program, "predict", os.path.join(folder, name + ".onnx"), "--data", new],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answers = list(csv.DictReader(done.stdout.splitlines()))
    assert len(answers) == 20, done.stdout
    assert all(float(row["lower"]) <= float(row["upper"]) for row in answers), done.stdout


def fit_messy(program, folder, large_rows):
    print("| file | rows | coverage % | mean length | deviation of y | score | seconds |")
    print("|---|---|---|---|---|---|---|")
    for name in messy_files(folder, large_rows):
        done, seconds = run_fit(program, os.path.join(folder, name + ".csv"), "price",
                                os.path.join(folder, name + ".onnx"))
        if done.returncode != 0:
            print(f"| {name} | {done.stderr.strip().splitlines()[-1]} |", flush=True)
            continue
        answer_new_rows(program, folder, name)
        found = json.loads(done.stdout)
        evaluation = found["evaluation"]
        main = evaluation.get("methods", [evaluation])[0]  # several where there is a baseline
        rows = found["training_rows"] + found["test_rows"]
        if found["calibration"] != "cross":
            rows += found["calibration_rows"]
        length = main["length"]
        length = length["mean"] if isinstance(length, dict) else length
        print(f"| {name} | {rows:,} | {100 * main['coverage']:.1f} | {length:.3g} "
              f"| {found['deviation']:.3g} | {found['score']} | {seconds:.0f} |", flush=True)


# Beside MAPIE.


def by_fcp(program, folder, train, test, target, classes):
    """Regions of the test rows and the time."""
    out = os.path.join(folder, "peer.onnx")
    with open(train, encoding="utf-8") as file:
        few = sum(1 for _ in file) <= 1000
    done, seconds = run_fit(program, train, target, out, "--shares", "73.5:24.5:2", "--task",
                            "classes" if classes else "numbers", "--calibration",
                            "cross" if few and not classes else "split")
    assert done.returncode == 0, done.stderr
    start = time.time()
    regions = subprocess.run([program, "predict", out, "--data", test, "--quiet"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    return list(csv.DictReader(regions.splitlines())), seconds + time.time() - start


def interval_figures(lower, upper, y):
    outside = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return {"coverage": np.mean((lower <= y) & (y <= upper)), "length": np.mean(upper - lower),
            "score": np.mean(upper - lower + 2 / ALPHA * outside)}


def set_figures(members, y):
    return {"coverage": np.mean(members[np.arange(len(y)), y]), "length": np.mean(members.sum(1)),
            "score": np.nan}


def crossed_mapie_figures(data, rest, test, seed):
    from mapie.regression import CrossConformalRegressor
    from sklearn.ensemble import HistGradientBoostingRegressor

    start = time.time()
    x, y = data.data, data.target
    peer = CrossConformalRegressor(HistGradientBoostingRegressor(random_state=seed),
                                   confidence_level=1 - ALPHA, method="plus", cv=10)
    peer.fit_conformalize(x[rest], y[rest])
    ends = peer.predict_interval(x[test])[1][:, :, 0]
    figures = interval_figures(ends[:, 0], ends[:, 1], y[test])
    return figures | {"seconds": time.time() - start}


def mapie_figures(data, rest, test, seed, classes):
    from mapie.classification import SplitConformalClassifier
    from mapie.regression import SplitConformalRegressor
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    start = time.time()
    cut = len(rest) * 3 // 4
    train, calibration = rest[:cut], rest[cut:]
    x, y = data.data, data.target
    if classes:
        model = HistGradientBoostingClassifier(random_state=seed).fit(x[train], y[train])
        peer = SplitConformalClassifier(model, confidence_level=1 - ALPHA, prefit=True,
                                        conformity_score="lac")
        peer.conformalize(x[calibration], y[calibration])
        figures = set_figures(peer.predict_set(x[test])[1][:, :, 0], y[test])
    else:
        model = HistGradientBoostingRegressor(random_state=seed).fit(x[train], y[train])
        peer = SplitConformalRegressor(model, confidence_level=1 - ALPHA, prefit=True)
        peer.conformalize(x[calibration], y[calibration])
        ends = peer.predict_interval(x[test])[1][:, :, 0]
        figures = interval_figures(ends[:, 0], ends[:, 1], y[test])
    return figures | {"seconds": time.time() - start}


def fcp_figures(program, folder, data, rest, test, classes):
    columns = [f"x{j}" for j in range(data.data.shape[1])]
    paths = {}
    for name, rows in (("rest", rest), ("test", test)):
        paths[name] = os.path.join(folder, name + ".csv")
        with open(paths[name], "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([*columns, "y"])
            writer.writerows([*data.data[i], data.target[i]] for i in rows)
    regions, seconds = by_fcp(program, folder, paths["rest"], paths["test"], "y", classes)
    y = data.target[test]
    if classes:
        members = np.zeros((len(test), len(data.target_names)), bool)
        for i, row in enumerate(regions):
            members[i, [int(float(label)) for label in row["labels"].split("|") if label]] = True
        return set_figures(members, y) | {"seconds": seconds}
    ends = np.array([[float(row["lower"]), float(row["upper"])] for row in regions])
    return interval_figures(ends[:, 0], ends[:, 1], y) | {"seconds": seconds}


def beside_mapie(program, folder, seeds):
    from sklearn import datasets

    print("| table | method | coverage % | length or size | interval score | seconds |")
    print("|---|---|---|---|---|---|")
    for name in ("diabetes", "wine", "breast_cancer", "digits"):
        data = getattr(datasets, "load_" + name)()
        classes = name != "diabetes"
        found = {"fcp fit": [], "boosting + MAPIE": []}
        if not classes:
            found["boosting + MAPIE, CV+"] = []
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(data.target))
            test, rest = order[:len(order) // 5], order[len(order) // 5:]
            found["fcp fit"].append(fcp_figures(program, folder, data, rest, test, classes))
            found["boosting + MAPIE"].append(mapie_figures(data, rest, test, seed, classes))
            if not classes:
                found["boosting + MAPIE, CV+"].append(crossed_mapie_figures(data, rest, test, seed))
        for method, results in found.items():
            mean = {key: np.mean([one[key] for one in results]) for key in results[0]}
            score = "" if classes else f"{mean['score']:.4g}"
            print(f"| {name} | {method} | {100 * mean['coverage']:.1f} | {mean['length']:.4g} "
                  f"| {score} | {mean['seconds']:.1f} |", flush=True)


# Beside pipelines of gradient boosting.


def mean_figures(found):
    """Means over seeds of figures that all have."""
    return {key: np.mean([one[key] for one in found]) for key in found[0]}


def conditional_figures(program, out, test, target):
    """Coverage of the worst slab, and how far coverage is from 90 % among rows alike, on average."""
    done = subprocess.run([program, "evaluate", out, "--data", test, "--target", target, "--json",
                           "--quiet"], stdout=subprocess.PIPE, text=True, check=True)
    found = json.loads(done.stdout)["conditional"]
    return {"slab": found["worst_slab"]["coverage"], "gap": found.get("coverage_gap", np.nan)}


def fcp_on_table(program, folder, lines, rest, test, target, y, more):
    paths = {}
    for name, rows in (("rest", rest), ("test", test)):
        paths[name] = os.path.join(folder, name + ".csv")
        with open(paths[name], "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in [lines[0], *(lines[1 + i] for i in rows)])
    out = os.path.join(folder, "table.onnx")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done, seconds = run_fit(program, paths["rest"], target, out, "--shares", "70:28:2", "--task",
                            "numbers", *more)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processors = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    print(" ", json.loads(done.stdout)["score"],
          json.loads(done.stdout)["evaluation"]["provenance"].get("ensemble", ""), flush=True)
    answers = subprocess.run([program, "predict", out, "--data", paths["test"], "--quiet"],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = list(csv.DictReader(answers.splitlines()))
    ends = np.array([[float(row[name]) for name in ("prediction", "lower", "upper")]
                     for row in rows])
    return interval_figures(ends[:, 1], ends[:, 2], y[test]) | {
        "rmse": np.sqrt(np.mean((y[test] - ends[:, 0]) ** 2)), "seconds": seconds,
        "processors": processors} | conditional_figures(program, out, paths["test"], target)


def beside_pipelines(options, folder):
    import io

    import boosting
    import pandas

    print("| table | method | coverage % | length | interval score | RMSE | worst slab % "
          "| coverage gap % | seconds | of all processors |")
    print("|---" * 10 + "|")
    for table in options.table:
        target, path = table.split("=", 1)
        with open(path, encoding="utf-8-sig") as file:
            whole = file.read().splitlines()
        found = {}
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            order = np.random.RandomState(seed).permutation(len(whole) - 1)[:options.rows]
            lines = [whole[0], *(whole[1 + i] for i in order)]
            frame = pandas.read_csv(io.StringIO("\n".join(lines)))
            y, count = frame[target].to_numpy(float), len(order)
            test, rest = np.arange(count // 5), np.arange(count // 5, count)
            cut = len(rest) * 7 // 10
            found.setdefault("fcp fit", []).append(fcp_on_table(
                options.program, folder, lines, rest, test, target, y, options.more or []))
            if options.without_pipelines:
                continue
            for name, center, lower, upper, seconds in boosting.run(
                    frame, target, rest[:cut], rest[cut:], test, seed):
                figures = interval_figures(lower, upper, y[test]) | {
                    "seconds": seconds[0], "processors": seconds[1]}
                if center is not None:
                    figures["rmse"] = np.sqrt(np.mean((y[test] - center) ** 2))
                found.setdefault(name, []).append(figures)
        for method, results in found.items():
            mean = mean_figures(results)
            rmse = f"{mean['rmse']:.4g}" if "rmse" in mean else ""
            slab, gap = (f"{100 * mean[key]:.1f}" if key in mean else "" for key in ("slab", "gap"))
            print(f"| {os.path.basename(path)} | {method} | {100 * mean['coverage']:.1f} "
                  f"| {mean['length']:.4g} | {mean['score']:.4g} | {rmse} | {slab} | {gap} "
                  f"| {mean['seconds']:.1f} | {mean['processors']:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", help="for the files; by default one that is removed")
    parser.add_argument("--large-rows", type=int, default=200_000, help="of the large file; 0: none")
    parser.add_argument("--only", choices=["messy", "peers"])
    parser.add_argument("--table", action="append", help="TARGET=FILE.csv")
    parser.add_argument("--rows", type=int, help="of each table, at most")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--without-pipelines", action="store_true", help="fcp alone")
    parser.add_argument("--more", action="append", help="of fcp fit, as --more=--no-trees")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        os.makedirs(folder, exist_ok=True)
        if options.table:
            beside_pipelines(options, folder)
            return
        if options.only != "peers":
            fit_messy(options.program, folder, options.large_rows)
        if options.only != "messy":
            beside_mapie(options.program, folder, options.seeds)


if __name__ == "__main__":
    main()
