"""The commands that are compared, in their order. Files that they read are made by data.py or by
commands before them."""
import dataclasses
import re
import shlex

# Flags whose value names files that a command writes.
WRITING = ("--out", "--report", "--refused", "--scores")
WITHOUT_THREADS = ("doctor", "completion", "man", "help", "show", "split", "--version", "--help",
                   "nonsense")


@dataclasses.dataclass(frozen=True)
class Command:
    name: str
    text: str
    code: int = 0         # with which BEFORE ends
    kind: str = "fcp"     # or "ranks", "package", "server", "example"
    stdin: str = ""       # a file
    makes: tuple = ()     # files that no flag names
    ignored: str = ""     # a regular expression of files that are not compared

    def words(self):
        words = shlex.split(self.text)
        plain = words[0] in WITHOUT_THREADS or words[-1] in ("--help", "--help-all")
        if self.kind in ("fcp", "ranks") and not plain and "--threads" not in words:
            words += ["--threads", "1"]
        return words

    def ignores(self, file):
        return bool(self.ignored) and re.match(self.ignored, file) is not None

    def writes(self):
        words = shlex.split(self.text)
        files = set(self.makes)
        for flag, value in zip(words, words[1:]):
            if flag in WRITING:
                files.update(part.split("=")[-1] for part in value.split(","))
        return files

    def reads(self):
        """Names of files and folders, and other words, that are not of files it writes."""
        words = shlex.split(self.text)
        values = [word for flag, word in zip(["", *words], words) if flag not in WRITING]
        pieces = {self.stdin}
        for value in values:
            for part in value.split(","):
                pieces.update((part, part.split("=")[-1], part.split("/")[0]))
        return pieces


def refused(name, text, code=1, **more):
    return Command("error: " + name, text, code, **more)


# Networks and whole ways through.

MODELS = [
    Command("train", "train train.csv --target y --members 2 --epochs 12 --layers 16,16,8 --out t.onnx"),
    Command("train json", "train train.csv --target y --members 2 --epochs 3 --layers 8,8 --no-heads "
                          "--centre median --seed 4 --json --out t2.onnx"),
    Command("train one member, curve", "train train.csv --target y --members 1 --epochs 4 --layers 8 "
                                       "--curve --holdout 0.3 --patience 2 --out t1.onnx"),
    Command("train paper", "train train.csv --target y --recipe paper --layers 16,16 --epochs 8 "
                           "--out p.onnx"),
    Command("train quantiles", "train train.csv --target y --loss quantile --members 1 --epochs 8 "
                               "--layers 16,8 --out q.onnx"),
    Command("train paper, two networks", "train train.csv --target y --recipe paper --loss quantile "
                                         "--two-networks --layers 8,8 --epochs 3 --out q2.onnx"),
    Command("train classes", "train ktrain.csv --target kind --drop side --loss cross-entropy "
                             "--members 2 --epochs 10 --layers 16,8 --out k.onnx"),
    Command("train classes with a category", "train trees.csv --target kind --members 1 --epochs 5 "
                                             "--layers 8 --out trees.onnx"),
    Command("train two targets", "train train2.csv --target y,z --members 2 --epochs 6 --layers 16,8 "
                                 "--weights 1,2 --out two.onnx"),
    Command("train arrays", "train x_cal.npy --target y_cal.npy --recipe paper --layers 8 --epochs 2 "
                            "--threads 2 --json --out n.onnx"),
    Command("train messy table", "train homes.csv --target price --members 2 --epochs 6 --layers 16,8 "
                                 "--drop owner --on-error skip --refused homes.refused.csv --out homes.onnx"),
    Command("schema shown", "train homes.csv --target price --schema show"),
    Command("schema shown, json", "fit homes.csv --target price --schema show,kind=drop --json"),
]

FAST = "--members 2 --epochs 4"
WHOLE = [
    Command("fit", f"fit homes.csv --target price {FAST} --calibration split --out fit.onnx "
                   "--report fit.html"),
    Command("fit json", f"fit homes.csv --target price {FAST} --calibration split --score nested "
                        "--shares 2:1:1 --confidence 0.8 --seed 3 --json --out fit2.onnx --report fit2.html"),
    Command("fit cross", "fit homes.csv --target price --members 1 --epochs 2 --calibration cross "
                         "--out cross.onnx --report cross.html"),
    Command("fit cross by itself", "fit latehomes.csv --target price --members 1 --epochs 2 --json "
                                   "--out cross2.onnx"),
    Command("fit classes", f"fit trees.csv --target kind {FAST} --calibration split --json "
                           "--out fitk.onnx --report fitk.html"),
    Command("fit cross classes", "fit fewtrees.csv --target kind --members 1 --epochs 2 --json "
                                 "--out crossk.onnx --report crossk.html"),
    Command("fit groups", f"fit homes.csv --target price {FAST} --calibration split --group owner "
                          "--score residual --out fitg.onnx"),
    Command("fit time", f"fit homes.csv --target price {FAST} --calibration split --time sold "
                        "--objective length --json --out fitt.onnx"),
    Command("fit schema", f"fit homes.csv --target price {FAST} --calibration split --score residual "
                          "--schema sold=category,owner=drop --out fits.onnx"),
    Command("fit numbers as classes", "fit ktrain.csv --target kind --task numbers --members 1 "
                                      "--epochs 2 --calibration split --out fitn.onnx"),
    Command("fit two targets", f"fit train2.csv --target y,z {FAST} --json --out fit2t.onnx"),
    Command("fit skips rows", f"fit badhomes.csv --target price {FAST} --calibration split "
                              "--score residual --on-error skip --refused refused.csv --out fitb.onnx"),
    refused("fit, all problems", f"fit badhomes.csv --target price {FAST} --out x.onnx"),
    Command("demo", "demo --out demo --alpha 0.2 --seed 5", makes=("demo",)),
    Command("split", "split homes.csv --seed 2", makes=(
        "homes.train.csv", "homes.calibration.csv", "homes.test.csv")),
    Command("split, stratified", "split trees.csv --shares 4:1 --stratify kind --out s1.csv,s2.csv --json"),
    Command("split by group", "split homes.csv --group owner --out g1.csv,g2.csv,g3.csv"),
    Command("split by time", "split log.csv --time day --out d1.csv,d2.csv,d3.csv"),
]

NETWORKS = [
    Command(f"inspect {name}", f"inspect {name}.onnx") for name in
    ("t", "homes", "ends", "attention", "text")
] + [
    Command("inspect attention json", "inspect attention.onnx --json --shape x=2,4"),
    Command("run to csv", "run plain.onnx --data x_test.npy --out run.csv"),
    Command("run to npy", "run plain.onnx --data test.csv --drop y,region,w,day,id --out run.npy --json"),
    Command("run backbone", "run plain.onnx --data x_test.npy --to hidden1 --out feature.npy"),
    Command("run head", "run plain.onnx --data feature.npy --from hidden1 --out head.npy"),
    Command("run several outputs", "run ends.onnx --data x_test.npy --out low=low.npy --out high=high.csv"),
    Command("run several inputs", "run inputs.onnx --data ids=ids_test.npy --data x=x2_test.npy --out twice.npy"),
    Command("run table with categories", "run homes.onnx --data newhomes.csv --out homes.run.csv"),
    Command("run text", "run text.onnx --data cities.csv --out cities.run.csv"),
    Command("run attention", "run attention.onnx --data x_test.npy --out attention.run.npy --batch 7"),
    Command("run images", "run convolution.onnx --data newphotos --resize 0 --crop 0 --out photos.run.npy"),
]


# Calibration, and what becomes of each result.

def method(name, model, options, rows, *, predict=True, check=None, export=None, report=False, new="",
           levels="0.05,0.3"):
    """calibrate, and predict at two levels; check and export where their exit codes are given; with a
    report check and evaluate. `rows`: options that name the calibration rows, and those of the test
    rows with their truth and without; `new`: options for new rows."""
    calibration, truth, plain = rows
    stem = name.replace(" ", "_")
    found = [Command(f"{name}: calibrate", f"calibrate {model} {calibration} {options} --json "
                                           f"--out {stem}.onnx")]
    if predict:
        found.append(Command(f"{name}: predict", f"predict {stem}.onnx {plain} {new} --alpha {levels}"))
    if check is not None or report:
        found.append(Command(f"{name}: check", f"check {stem}.onnx {truth} {new}", check or 0))
    if export is not None:
        found.append(Command(f"{name}: export", f"export {stem}.onnx --alpha {levels} "
                                                f"--out {stem}.exported.onnx", export))
    if report:
        found.append(Command(f"{name}: evaluate", f"evaluate {stem}.onnx {truth} {new} --json "
                                                  f"--report {stem}.html"))
    return found


TABLE = ("--data cal.csv --target y", "--data test.csv --target y", "--data test.csv")
ARRAYS = ("--data x_cal.npy --target y_cal.npy", "--data x_test.npy --target y_test.npy",
          "--data x_test.npy")
LABELS = ("--data kcal.csv --target kind", "--data ktest.csv --target kind", "--data ktest.csv")
TWO = ("--data cal2.csv --target y,z", "--data test2.csv --target y,z", "--data test2.csv")
HOMES = ("--data latehomes.csv --target price", "--data latehomes.csv --target price",
         "--data newhomes.csv")
PHOTOS = ("--data photos.csv --images --target kind --class-names names.txt --resize 0 --crop 0",
          "--data newphotos.csv --images --target kind --class-names names.txt", "--data newphotos")
INPUTS = ("--data icaltwo.npz --target y", "--data itesttwo.npz --target y", "--data itesttwo.npz")
CITIES = ("--data cities.csv --target y", "--data cities.csv --target y", "--data cities.csv")


MANY = ("--data x_many.npy --target y_many.npy", *ARRAYS[1:])
# Names, networks, rows and options; what becomes of the result.
SCORES = (
    ("residual", "t", TABLE, "--score residual", dict(report=True, export=0)),
    ("nested", "t", TABLE, "--score nested", dict(report=True, export=0)),
    ("nested auto cut", "t", TABLE, "--score nested --cut auto", {}),
    ("nested named cut", "p", TABLE, "--score nested --cut hidden1 --floor 0.25", {}),
    ("nested l2", "plain", ARRAYS, "--score nested --cut 1 --norm 2", dict(export=0)),
    ("nested l1", "p", TABLE, "--score nested --norm 1 --floor 0.5", dict(predict=False)),
    ("nested crown", "p", TABLE, "--score nested --bound crown", dict(export=1)),
    ("nested crown-ibp", "plain", ARRAYS, "--score nested --bound crown-ibp --cut layer1", dict(predict=False)),
    ("nested alpha-crown", "p", TABLE, "--score nested --bound alpha-crown --iterations 3 --cut 2", {}),
    ("nested attention", "attention", ARRAYS, "--score nested --cut embedded", dict(export=0)),
    ("nested attention crown", "attention", ("--data x_test.npy --target y_test.npy", *ARRAYS[1:]),
     "--score nested --cut residual --bound crown", dict(predict=False)),
    ("linearized", "p", TABLE, "--score linearized", dict(check=0, export=0)),
    ("linearized l1", "plain", ARRAYS, "--score linearized --norm 1 --floor 1 --cut 1", dict(predict=False)),
    ("surrogate", "p", TABLE, "--score surrogate --steps 5 --rate 0.05", dict(check=0, export=1)),
    ("surrogate auto", "p", TABLE, "--score surrogate --bound crown", dict(predict=False)),
    ("surrogate adam", "plain", ARRAYS, "--score surrogate --steps 3 --adam --cut 1", {}),
    ("surrogate paper", "p", TABLE, "--score surrogate --paper", dict(report=True)),
    ("spread", "t", TABLE, "--score spread", dict(export=0)),
    ("quantiles", "t", TABLE, "--score quantiles", dict(report=True)),
    ("quantiles tail", "t", TABLE, "--score quantiles --tail 0.2", {}),
    ("density", "t", TABLE, "--score density", dict(check=0, export=0)),
    ("density union", "t", TABLE, "--score density --union", dict(report=True, export=1)),
    ("learned heads", "plain", MANY, "--score spread --cut hidden2", dict(export=0)),
    ("learned union", "plain", MANY, "--score density --union", {}),
    ("heads on other rows", "plain", ("--data cal.csv.gz --target y", *ARRAYS[1:]),
     "--score quantiles --fit-data heads.csv", {}),
    ("auto", "t", TABLE, "", dict(report=True)),
    ("auto by length", "t", TABLE, "--score auto --objective length --selection 0.3 --alpha 0.2", dict(predict=False)),
    ("auto, foreign network", "plain", MANY, "--score auto", dict(predict=False)),
    ("auto quantiles", "q", TABLE, "--score auto", dict(predict=False)),
    ("cqr", "q", TABLE, "--score cqr", {}),
    ("cqr asymmetric", "q", TABLE, "--score cqr --asymmetric", dict(report=True, export=0)),
    ("cqr named outputs", "ends", ARRAYS, "--score cqr --low low --high high", {}),
    ("feature_cqr", "q", TABLE, "--score feature_cqr", {}),
    ("feature_cqr asymmetric", "q", TABLE, "--score feature_cqr --asymmetric --norm 2", dict(export=0)),
    ("feature_cqr paper", "q2", TABLE, "--score feature_cqr --paper --steps 4", dict(check=0)),
    ("normalized residual", "spreads", ARRAYS, "--score residual --output y --normalize spread",
     dict(check=0, export=0)),
    ("spread output", "spreads", ARRAYS, "--score spread --spread spread --output y", {}),
    ("named output", "ends", ARRAYS, "--score residual --output middle", {}),
    ("two outputs residual", "two", TWO, "--score residual", dict(export=0)),
    ("two outputs nested", "two", TWO, "--score nested --norm 2", dict(report=True, export=0)),
    ("two outputs linearized", "two", TWO, "--score linearized", dict(predict=False)),
    ("two outputs spread", "two", TWO, "--score spread", {}),
    ("two outputs quantiles", "two", TWO, "--score quantiles", dict(predict=False)),
    ("two outputs density", "two", TWO, "--score density", dict(export=0)),
    ("two outputs union", "two", TWO, "--score density --union", {}),
    ("two outputs surrogate", "two", TWO, "--score surrogate --steps 3 --loss-weights 1,0.5", {}),
    ("two outputs auto", "two", TWO, "", {}),
    ("two outputs with scales", "plain2", ("--data x_test.npy --target y2_test.npy",
                                           "--data x_test.npy --target y2_test.npy", ARRAYS[2]), "",
     dict(export=0)),
    ("lac", "k", LABELS, "--score lac", dict(report=True, export=0)),
    ("lac temperature", "k", LABELS, "--score lac --temperature auto", dict(predict=False)),
    ("aps", "k", LABELS, "--score aps", dict(check=0, export=1)),
    ("aps whole", "k", LABELS, "--score aps --not-randomized --temperature 1.5", dict(export=0)),
    ("raps", "k", LABELS, "--score raps", dict(report=True)),
    ("raps named", "k", LABELS, "--score raps --rank-weight 0.1 --rank-free 1 --not-randomized",
     dict(predict=False)),
    ("feature_margin", "k", LABELS, "--score feature_margin", dict(check=0, export=0)),
    ("feature_margin l2", "logits", ("--data x_cal.npy --target groups_cal.npy",
                                     "--data x_test.npy --target groups_test.npy", ARRAYS[2]),
     "--score feature_margin --rank-weight 0 --norm 2 --cut 1", {}),
    ("feature_sampled", "k", LABELS, "--score feature_sampled --samples 40 --steps 3", dict(check=0)),
    ("auto labels", "k", LABELS, "", {}),
    ("photos lac", "colours", PHOTOS, "--score lac", dict(report=True, export=0)),
    ("photos feature_margin", "convolution", PHOTOS, "--score feature_margin --cut feature", {}),
    ("messy table", "homes", HOMES, "--score nested --calibration localized --bandwidth 2 "
     "--allow-training-rows", dict(check=0)),
    ("several inputs nested", "inputs", INPUTS, "--score nested", dict(report=True, export=0)),
    ("several inputs as columns", "inputs", ("--data icaltwo.csv --target y", "--data itesttwo.csv --target y",
                                             "--data itesttwo.csv"), "--score residual", dict(check=0)),
    ("text input", "text", CITIES, "--score residual", dict(check=0)),
)

GROUPED = dict(new="--group region", export=1)
CALIBRATIONS = (
    ("grouped residual", "--score residual --calibration grouped --group region", dict(report=True, **GROUPED)),
    ("grouped nested", "--score nested --calibration grouped --group region", GROUPED),
    ("grouped spread", "--score spread --calibration grouped --group region", dict(new="--group region")),
    ("grouped union", "--score density --union --calibration grouped --group region",
     dict(report=True, new="--group region")),
    ("localized residual", "--score residual --calibration localized", dict(check=0, export=1)),
    ("localized nested", "--score nested --calibration localized", dict(report=True)),
    ("localized spread", "--score spread --calibration localized", dict(predict=False)),
    ("localized union", "--score density --union --calibration localized", {}),
    ("localized bandwidth", "--score residual --calibration localized --bandwidth 0.7 --cut 1", dict(predict=False)),
    ("estimated residual", "--score residual --calibration weighted --shifted shifted.csv",
     dict(report=True, export=1)),
    ("estimated nested", "--score nested --calibration weighted --shifted shifted.csv", dict(predict=False)),
    ("estimated union", "--score density --union --calibration weighted --shifted shifted.csv", {}),
    ("weighted residual", "--score residual --calibration weighted --weights w",
     dict(report=True, export=1, new="--weights w")),
    ("weighted nested", "--score nested --calibration weighted --weights w", dict(new="--weights w")),
    ("rectified residual", "--score residual --calibration rectified", dict(report=True, export=0)),
    ("rectified nested", "--score nested --calibration rectified", dict(export=0)),
    ("rectified spread", "--score spread --calibration rectified", dict(export=0)),
)


def calibrations():
    for name, options, more in CALIBRATIONS:
        yield from method(name, "t.onnx", options, TABLE, **more)
    yield from method("grouped array", "plain.onnx", "--score nested --calibration grouped "
                      "--group groups_cal.npy", ARRAYS, new="--group groups_test.npy", check=0)
    yield from method("weighted array", "plain.onnx", "--score residual --calibration weighted "
                      "--weights weights_cal.npy", ARRAYS, new="--weights weights_test.npy")
    for options, new in (("grouped --group region", "--group region"), ("localized", ""),
                         ("weighted --shifted shifted.csv", "")):
        yield from method(f"{options.split()[0]} cqr", "q.onnx",
                          f"--score cqr --asymmetric --calibration {options}", TABLE, new=new)
    for group, export in (("side", 1), ("predicted", 0), ("label", 0)):
        yield from method(f"labels by {group}", "k.onnx",
                          f"--score lac --calibration grouped --group {group}", LABELS,
                          new="--group side" if group == "side" else "", export=export,
                          report=group == "label")
    yield from method("localized labels", "k.onnx", "--score lac --calibration localized", LABELS, check=0)
    yield from method("estimated labels", "k.onnx",
                      "--score aps --calibration weighted --shifted ktest.csv", LABELS, check=0)
    # Groups that calibration has not seen, and rows without a group.
    yield Command("grouped: unseen groups", "predict grouped_residual.onnx --data odd.csv --group region")
    yield Command("grouped: group column by itself", "predict grouped_residual.onnx --data odd.csv")
    yield refused("grouped, no group", "predict grouped_residual.onnx --data shifted.csv")
    yield Command("estimated with named ratios", "predict estimated_residual.onnx --data test.csv --weights w")


LEVELS = [
    *method("kept levels nested", "t.onnx", "--score nested --levels 0.05,0.3,0.1", TABLE, check=1, export=0),
    *method("kept levels cqr", "q.onnx", "--score cqr --asymmetric --levels 0.3,0.05", TABLE, export=0),
    *method("kept levels lac", "k.onnx", "--score lac --levels 0.05,0.3", LABELS, check=1, export=0),
    *method("kept levels union", "t.onnx", "--score density --union --levels 0.3,0.05", TABLE),
    *method("kept levels surrogate paper", "p.onnx", "--score surrogate --paper --steps 3 --levels 0.05,0.3",
            TABLE),
    refused("levels of grouped", "calibrate t.onnx --data cal.csv --target y --score residual "
            "--levels 0.05,0.3 --calibration grouped --group region --out x.onnx", 2),
    Command("kept levels: evaluate", "evaluate kept_levels_nested.onnx --data test.csv --target y --json"
            " --report kept.html"),
    refused("another level", "predict kept_levels_nested.onnx --data test.csv --alpha 0.2"),
    refused("levels of localized", "calibrate t.onnx --data cal.csv --target y --score residual "
            "--calibration localized --levels 0.1 --out x.onnx", 2),
    Command("checkpoint", "calibrate p.onnx --data cal.csv --target y --score surrogate --steps 3 "
            "--checkpoint check.point --batch 50 --out checkpoint.onnx --json"),
    Command("two threads", "calibrate t.onnx --data cal.csv --target y --score nested --cut auto "
            "--threads 2 --out threads.onnx"),
    Command("packed table", "calibrate t.onnx --data cal.csv.gz --target y --score nested --batch 11 "
            "--out packed.onnx"),
    Command("archive", "calibrate plain.onnx --data cal.npz:x --target y_cal.npy --score nested "
            "--out archive.onnx --json"),
    Command("few rows", "calibrate t.onnx --data few.csv --target y --score nested --out few.onnx"),
    Command("few rows: predict", "predict few.onnx --data test.csv --alpha 0.1,0.5"),
    Command("few rows: predict json", "predict few.onnx --data test.csv --out few.npy --json"),
    Command("few rows: export", "export few.onnx --out few.exported.onnx"),
    Command("ranks", "calibrate t.onnx --data cal.csv --target y --score nested --out ranks.onnx --json",
            kind="ranks"),
    Command("ranks, levels", "calibrate plain.onnx --data x_cal.npy --target y_cal.npy --score residual "
            "--levels 0.1,0.2 --out ranks2.onnx", kind="ranks"),
    Command("ranks: evaluate", "evaluate ranks.onnx --data test.csv --target y --json", kind="ranks"),
]

PREDICT = [
    Command("predict to csv", "predict nested.onnx --data test.csv --out intervals.csv"),
    Command("predict levels, keep", "predict nested.onnx --data test.csv --alpha 0.1,0.2,0.05 --keep id,day "
            "--out intervals3.csv"),
    Command("predict to npy", "predict nested.onnx --data test.csv --confidence 0.95 --out intervals.npy --json"),
    Command("predict levels to npy", "predict nested.onnx --data test.csv --alpha 0.1,0.2 "
            "--out intervals2.npy --json", 1),
    Command("predict json", "predict nested.onnx --data test.csv --alpha 0.1,0.2 --out i.csv --json"),
    Command("predict standard input", "predict nested.onnx --data - --batch 7 --threads 2", stdin="test.csv"),
    Command("predict two outputs to npy", "predict two_outputs_nested.onnx --data test2.csv --out two.npy"),
    Command("predict union to npy", "predict density_union.onnx --data test.csv --out union.npy", 1),
    Command("predict union to csv", "predict density_union.onnx --data test.csv --alpha 0.4 --out union.csv"),
    Command("predict labels to npy", "predict lac.onnx --data ktest.csv --out sets.npy --json"),
    Command("predict labels, keep", "predict fitk.onnx --data unknown.csv --keep a,side --alpha 0.1,0.3"),
    Command("predict without all columns", "predict fit.onnx --data newhomes.csv --out newhomes.out.csv"),
    Command("predict skips rows", "predict fit.onnx --data badhomes.csv --on-error skip --refused bad.csv"),
    Command("check to csv", "check nested.onnx --data test.csv --target y --alpha 0.3 --out checked.csv --json"),
    Command("check labels", "check fitk.onnx --data unknown.csv --target kind"),
    Command("cross: predict", "predict cross.onnx --data newhomes.csv --alpha 0.1,0.2"),
    Command("cross: check", "check cross.onnx --data latehomes.csv --target price"),
    Command("cross: evaluate", "evaluate cross.onnx --data latehomes.csv --target price --json --report c.html"),
    Command("cross: export", "export cross.onnx --alpha 0.1,0.2 --out cross.exported.onnx --json"),
    Command("cross classes: predict", "predict crossk.onnx --data unknown.csv --alpha 0.1,0.2"),
    Command("cross classes: check", "check crossk.onnx --data unknown.csv --target kind"),
    Command("cross classes: evaluate", "evaluate crossk.onnx --data unknown.csv --target kind --json"),
    refused("cross classes, export", "export crossk.onnx --out x.onnx"),
    refused("cross, update", "update cross.onnx --data latehomes.csv --target price --out x.onnx"),
    Command("evaluate", "evaluate nested.onnx --data test.csv --target y --group region"),
    Command("evaluate, report of a group", "evaluate residual.onnx --data test.csv --target y --group region "
            "--alpha 0.2 --report grouped.html --json"),
    Command("evaluate labels", "evaluate lac.onnx --data ktest.csv --target kind --group side"),
    Command("evaluate unknown labels", "evaluate fitk.onnx --data unknown.csv --target kind --report u.html"),
    Command("evaluate two outputs", "evaluate two_outputs_nested.onnx --data test2.csv --target y,z"),
    Command("evaluate fails below", "evaluate residual.onnx --data log.csv --target y --fail-below 0.01", 3),
    Command("evaluate refit", "evaluate nested.onnx --data test.csv --target y --json --refit "
            "residual.onnx,quantiles.onnx"),
    Command("evaluate online", "evaluate nested.onnx --data log.csv --target y --calibration online"),
    Command("evaluate online aci", "evaluate residual.onnx --data log.csv --target y --calibration online "
            "--adapt aci --step 0.05 --window 90 --json"),
    Command("export json", "export nested.onnx --alpha 0.1,0.2 --prefix t_ --out prefixed.onnx --json"),
    Command("export one level", "export residual.onnx --out one.onnx"),
    Command("run exported", "run one.onnx --data test.csv --out lower=lower.npy --out upper=upper.npy"),
]

LATER = [
    *(Command(f"show {name}", f"show {name}.onnx") for name in
      ("surrogate_paper", "grouped_residual", "two_outputs_nested", "kept_levels_nested", "fit", "few")),
    *(Command(f"show json {name}", f"show {name}.onnx --json") for name in
      ("nested", "density_union", "estimated_residual", "cqr_asymmetric", "raps", "crossk",
       "several_inputs_nested", "kept_levels_cqr")),
    Command("compare", "compare nested.onnx residual.onnx --data test.csv --target y"),
    Command("compare json", "compare quantiles.onnx density_union.onnx --data test.csv --target y --json "
            "--alpha 0.2"),
    Command("compare labels", "compare lac.onnx aps.onnx --data ktest.csv --target kind --json"),
    Command("update", "update nested.onnx --data more.csv --target y --out updated.onnx --json"),
    Command("update again", "update updated.onnx --data log.csv --target y --window 120 --out updated2.onnx"),
    Command("update since", "update residual.onnx --data log.csv --target y --time day --since 2026-03-01 "
            "--out since.onnx --json"),
    Command("update groups", "update grouped_residual.onnx --data more.csv --target y --group region "
            "--out updatedg.onnx"),
    Command("update localized", "update localized_nested.onnx --data more.csv --target y --out updatedl.onnx"),
    Command("update weighted", "update estimated_residual.onnx --data more.csv --target y --window 150 "
            "--out updatedw.onnx"),
    Command("update union", "update density_union.onnx --data more.csv --target y --out updatedu.onnx"),
    Command("update labels", "update lac.onnx --data ktest.csv --target kind --out updatedk.onnx"),
    Command("update two outputs", "update two_outputs_nested.onnx --data test2.csv --target y,z "
            "--out updated2t.onnx"),
    Command("show updated", "show updated2.onnx --json"),
    refused("update with known rows", "update nested.onnx --data cal.csv --target y --out x.onnx"),
    refused("update kept levels", "update kept_levels_nested.onnx --data more.csv --target y --out x.onnx", 2),
    Command("monitor", "monitor nested.onnx --data log.csv --target y --time day --period month "
            "--report monitor.html", 3),
    Command("monitor json", "monitor residual.onnx --data test.csv --target y --watch none --every 20 --json"),
    Command("monitor adapts", "monitor nested.onnx --data log.csv --target y --watch a,b --adapt dtaci "
            "--window 60 --json", 3),
    Command("monitor aci, reference", "monitor residual.onnx --data log.csv --target y --adapt aci --step 0.02 "
            "--reference shifted.csv --false-alarms 0.1", 3),
    Command("monitor groups", "monitor grouped_residual.onnx --data more.csv --target y --group region "
            "--watch none --json"),
    Command("monitor labels", "monitor lac.onnx --data ktest.csv --target kind --json --watch none"),
]

SEGMENT = [
    Command("segment scenes", "segment scenes streets --train 12 --calibration 24 --test 8 --height 16 "
            "--width 24", makes=("streets",)),
    Command("segment train", "segment train streets --epochs 2 --channels 6 --out segmenter.onnx --json"),
    *(Command(f"segment calibrate {score}", f"segment calibrate segmenter.onnx --data streets --fold "
              f"calibration --score {score} {options} --out seg_{score}.onnx --scores seg_{score}.csv --json")
      for score, options in (("nested", "--pixels 0.9"), ("residual", ""), ("surrogate", "--steps 3"),
                             ("lac", "--pixels 0.95"))),
    *(Command(f"segment evaluate {score}", f"segment evaluate seg_{score}.onnx --data streets --fold test "
              f"--json --report seg_{score}.html --pictures 2 --images images_{score}.csv")
      for score in ("nested", "residual", "surrogate", "lac")),
    Command("segment predict", "segment predict seg_nested.onnx --data streets --fold test --out maps --bands"),
    Command("segment predict lac", "segment predict seg_lac.onnx --data streets --fold test --alpha 0.2 "
            "--out maps2 --bands"),
    Command("segment levels", "segment calibrate segmenter.onnx --data streets --fold calibration --score "
            "residual --levels 0.1,0.2 --keep-class-0 --out seg_levels.onnx"),
    Command("segment show", "show seg_nested.onnx --json"),
    refused("segment, no labels", "segment evaluate seg_nested.onnx --data newphotos"),
]

PAPER = [
    Command("reproduce example", "reproduce example --quick --out results", makes=("results",)),
    Command("reproduce levels", "reproduce levels --quick --out results2", makes=("results2",)),
    Command("selftest", "selftest --replications 12 --json"),
]

PACKAGE = [
    *(Command(f"package {part}", f"{part}", kind="package", makes=makes) for part, makes in (
        ("regressors", ()), ("classifiers", ()), ("files", ("package.onnx", "package.exported.onnx")),
        ("inputs", ()), ("wrapped", ()), ("errors", ()))),
    Command("package reads files", "reads nested.onnx grouped_residual.onnx estimated_residual.onnx "
            "localized_nested.onnx two_outputs_nested.onnx density_union.onnx kept_levels_nested.onnx",
            kind="package"),
    Command("package reads label files", "reads lac.onnx raps.onnx labels_by_label.onnx crossk.onnx fitk.onnx",
            kind="package"),
    Command("package reads tables", "tables fit.onnx cross.onnx homes.csv", kind="package"),
    Command("package's files in the program", "predict package.onnx --data x_test.npy --alpha 0.1,0.2"),
]

SERVER = [
    Command("serve tensors and columns", "answers nested.onnx lac.onnx two_outputs_nested.onnx fit.onnx "
            "several_inputs_nested.onnx localized_nested.onnx density_union.onnx kept_levels_nested.onnx",
            kind="server"),
    Command("serve groups and weights", "groups grouped_residual.onnx "
            "estimated_residual.onnx weighted_residual.onnx labels_by_side.onnx", kind="server"),
    Command("serve feedback", "feedback nested.onnx", kind="server", ignored="state"),
    Command("serve errors", "errors nested.onnx", kind="server"),
    refused("serve a plain network", "serve plain.onnx --port 0"),
    refused("serve no file", "serve none.onnx --port 0"),
]

EXAMPLES = [
    Command("example 2_your_onnx_model", "2_your_onnx_model plain.onnx x_cal.npy y_cal.npy example.onnx hidden1",
            kind="example", makes=("example.onnx",)),
    Command("example 3_service", "3_service example.onnx 0.1", kind="example", stdin="rows.txt"),
    Command("example 3_service on a table's network", "3_service nested.onnx 0.3", kind="example",
            stdin="rows.txt"),
    Command("example 3_service, two outputs", "3_service two_outputs_nested.onnx 0.05", kind="example",
            stdin="rows.txt"),
    Command("example 3_service, wrong file", "3_service plain.onnx 0.1", 1, kind="example",
            stdin="rows.txt"),
]

CALIBRATE = "calibrate t.onnx --data cal.csv --target y --out x.onnx"
ERRORS = [
    refused("no such file", "predict none.onnx --data test.csv"),
    refused("no such data", "predict nested.onnx --data none.csv"),
    refused("not a network", "inspect broken.onnx"),
    refused("not calibrated", "predict plain.onnx --data x_test.npy"),
    refused("unknown operator", "inspect unknown_operator.onnx"),
    refused("cut that leaks", "calibrate leaking.onnx --data x1.npy --target x1.npy --score nested --cut a "
            "--out x.onnx"),
    refused("no such cut", f"{CALIBRATE} --score nested --cut nowhere"),
    refused("no such column", "calibrate t.onnx --data cal.csv --target height --out x.onnx"),
    refused("training rows", "calibrate t.onnx --data train.csv --target y --out x.onnx"),
    refused("empty file", "calibrate t.onnx --data empty.csv --target y --out x.onnx"),
    refused("header alone", "calibrate t.onnx --data header.csv --target y --out x.onnx"),
    refused("ragged row", "calibrate t.onnx --data ragged.csv --target y --out x.onnx"),
    refused("text for a number", "calibrate t.onnx --data text.csv --target y --out x.onnx"),
    refused("missing cell", "calibrate plain.onnx --data holes.csv --target y --out x.onnx"),
    refused("NaN in an array", "predict learned_heads.onnx --data nan.npy"),
    refused("too few columns", "predict learned_heads.onnx --data narrow.npy"),
    refused("column that is not there", "predict nested.onnx --data ktest.csv"),
    refused("labels for intervals", "calibrate k.onnx --data kcal.csv --target kind --score nested "
            "--out x.onnx", 2),
    refused("group of intervals", f"{CALIBRATE} --score residual --calibration grouped --group predicted", 2),
    refused("option that does not apply", f"{CALIBRATE} --score residual --floor 0.3", 2),
    refused("unknown score", f"{CALIBRATE} --score nice", 2),
    refused("level out of range", "predict nested.onnx --data test.csv --alpha 1.5", 2),
    refused("level twice", f"{CALIBRATE} --score nested --levels 0.1,0.10", 2),
    refused("negative number", f"{CALIBRATE} --batch -3", 2),
    refused("unknown option", "predict nested.onnx --data test.csv --colour red", 2),
    refused("unknown verb", "nonsense", 2),
    refused("file that is also read", "predict nested.onnx --data test.csv --out nested.onnx", 2),
    refused("folder that is not there", "predict nested.onnx --data test.csv --out none/i.csv"),
    refused("export of localized", "export localized_nested.onnx --out x.onnx"),
    refused("two targets for one", "evaluate nested.onnx --data test2.csv --target y,z"),
    Command("version", "--version"),
    Command("help", "--help"),
    *(Command(f"help of {verb}", f"{verb} --help") for verb in (
        "fit", "demo", "split", "train", "inspect", "run", "calibrate", "check", "predict", "evaluate", "show",
        "compare", "update", "monitor", "serve", "export", "segment", "reproduce", "selftest", "doctor")),
    Command("manual page", "man"),
    Command("completion", "completion bash"),
]


def every_command():
    scores = [command for name, network, rows, options, more in SCORES
              for command in method(name, network + ".onnx", options, rows, **more)]
    found = [*MODELS, *WHOLE, *NETWORKS, *scores, *calibrations(), *LEVELS, *PREDICT, *LATER, *SEGMENT,
             *PAPER, *PACKAGE, *SERVER, *EXAMPLES, *ERRORS]
    names = [command.name for command in found]
    assert len(set(names)) == len(names), sorted(name for name in names if names.count(name) > 1)
    return found
