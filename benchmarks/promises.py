"""Coverage, the law, and single rows, through the Python package: every interval score with every
calibration on worlds where rounding, ties and few different rows matter.

    python benchmarks/promises.py [--calibrations T]

Each setting is calibrated T times on 99 rows and asked for 200 new ones at alpha 0.1. z compares
the mean coverage of the intervals with 0.9; its standard error is that of the calibrations, at least
what the Beta law says. Below -4 is an error, and above 4 where no two scores are equal and the mean
is exactly 0.9. The law is held for every new row: y lies between its ends exactly where `check` says
that its score is within the radius. `one by one` asks for each row in a call of its own.
"""

import argparse
import io
import math
import os
import tempfile

import numpy as np
import onnx
import torch

import fcp

ROWS, FRESH, ALPHA = 99, 200, 0.1
CUT = "feature"  # named, so that no row is left out to choose one


class Network(torch.nn.Module):
    """An answer, a second quantile above it, and what heads on features would add."""

    def __init__(self, scale, constant):
        super().__init__()
        torch.manual_seed(1)
        self.hidden = torch.nn.Linear(2, 8)
        self.answer = torch.nn.Linear(8, 1)
        self.other = torch.nn.Linear(8, 1)
        self.heads = torch.nn.Linear(8, 8)
        self.scale = scale
        if constant is not None:
            torch.nn.init.zeros_(self.answer.weight)
            torch.nn.init.constant_(self.answer.bias, constant)

    def forward(self, x):
        feature = torch.relu(self.hidden(x))
        answer = self.answer(feature) * self.scale
        high = answer + torch.nn.functional.softplus(self.other(feature)) * self.scale
        heads = self.heads(feature)
        spread = (torch.nn.functional.softplus(heads[:, :1]) + 0.1) * self.scale
        steps = torch.nn.functional.softplus(heads[:, 1:]) * self.scale
        quantiles = torch.cumsum(steps, 1) - 3 * self.scale
        return answer, high, spread, quantiles


def network_file(folder, name, scale, constant):
    path = os.path.join(folder, name + ".onnx")
    data = io.BytesIO()
    torch.onnx.export(
        Network(scale, constant).eval(), torch.zeros(1, 2), data, input_names=["x"],
        output_names=["y", "high", "fcp.spread", "fcp.quantiles"],
        dynamic_axes={"x": {0: "rows"}, "y": {0: "rows"}, "high": {0: "rows"},
                      "fcp.spread": {0: "rows"}, "fcp.quantiles": {0: "rows"}})
    model = onnx.load_model_from_string(data.getvalue())
    relu = next(node for node in model.graph.node if node.op_type == "Relu")
    for node in model.graph.node:
        for i, name in enumerate(node.input):
            if name == relu.output[0]:
                node.input[i] = CUT
    relu.output[0] = CUT
    onnx.save(model, path)
    return path


def even(random, rows):
    x = random.normal(size=(rows, 2))
    return x, x.sum(axis=1) + random.normal(size=rows) * (0.3 + np.abs(x[:, 0]))


def two_values(random, rows):
    x = random.integers(2, size=(rows, 1)) * np.ones(2)
    return x, random.normal(size=rows) * np.where(x[:, 0] == 0, 1, 4)


def whole_numbers(random, rows):
    x = np.round(random.normal(size=(rows, 2)))
    return x, np.round(x.sum(axis=1) + 2 * random.normal(size=rows))


def tiny(random, rows):
    x, y = even(random, rows)
    return x, -np.abs(random.normal(size=rows)) * 1e-20


def tiny_signs(random, rows):
    x, y = tiny(random, rows)
    return x, y * random.choice([-1, 1], size=rows)


def huge(random, rows):
    x, y = even(random, rows)
    return x, y * 1e30


# world: rows, scale of the network, its constant answer, whether no two scores are equal
WORLDS = {
    "even": (even, 1, None, True),
    "two values": (two_values, 1, None, True),
    "whole numbers": (whole_numbers, 1, None, False),
    "tiny": (tiny, 1, 2.0, False),
    "tiny, both signs": (tiny_signs, 1, 2.0, False),
    "huge": (huge, 1e30, None, True),
}
SCORES = {
    "residual": dict(method="residual", output="y"),
    "residual / spread": dict(method="residual", output="y", normalize="fcp.spread"),
    "linearized": dict(method="linearized", output="y", cut=CUT),
    "nested": dict(method="nested", output="y", cut=CUT),
    "cqr": dict(method="cqr", low="y", high="high"),
    "cqr, two radii": dict(method="cqr", low="y", high="high", asymmetric=True),
    "spread": dict(method="spread", output="y"),
    "quantiles": dict(method="quantiles", output="y"),
    "density": dict(method="density", output="y"),
}
CALIBRATIONS = {
    "split": dict(calibration="split"),
    "grouped": dict(calibration="grouped"),
    "localized": dict(calibration="localized", bandwidth=0.7),
    "localized, one by one": dict(calibration="localized", bandwidth=0.7),
}


def covered(regressor, x, y, groups, one_by_one):
    """By the printed ends, and by check; the same draws in both."""
    if one_by_one:
        ends = np.concatenate([regressor.predict_interval(x[i:i + 1], alpha=ALPHA)[1]
                               for i in range(len(x))])
    else:
        given = {} if groups is None else {"groups": groups}
        ends = regressor.predict_interval(x, alpha=ALPHA, **given)[1]
    ends = ends.reshape(len(x), 2)
    return (ends[:, 0] <= y) & (y <= ends[:, 1])


def judged(regressor, x, y, groups):
    given = {} if groups is None else {"groups": groups}
    found = regressor.check(x, y, alpha=ALPHA, **given)
    return np.asarray(found[-1], bool).ravel()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--calibrations", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    settings = errors = rows_judged = broken = 0
    lowest = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for world, (draw, scale, constant, no_ties) in WORLDS.items():
            path = network_file(folder, "network", scale, constant)
            for score, options in SCORES.items():
                if constant is not None and options.get("cut"):
                    continue  # the answer does not depend on the feature: scores are infinite
                for calibration, how in CALIBRATIONS.items():
                    random = np.random.default_rng(arguments.seed)
                    means = []
                    for _ in range(arguments.calibrations):
                        def rows(count):
                            x, y = draw(random, count)
                            return x.astype(np.float32), y.astype(np.float32)
                        x, y = rows(ROWS)
                        single = "one by one" in calibration
                        new_x, new_y = rows(40 if single else FRESH)
                        grouped = how["calibration"] == "grouped"
                        group = (lambda x: (x[:, 0] > 0).astype(int)) if grouped else lambda x: None
                        regressor = fcp.FeatureConformalRegressor(path, **options, **how)
                        regressor.conformalize(x, y, **({"groups": group(x)} if grouped else {}))
                        hit = covered(regressor, new_x, new_y, group(new_x), single)
                        told = judged(regressor, new_x, new_y, group(new_x))
                        broken += int((hit != told).sum())
                        rows_judged += len(hit)
                        means.append(hit.mean())
                    settings += 1
                    # At least that of the Beta law and of so many new rows.
                    least = ALPHA * (1 - ALPHA) * (1 / (ROWS + 2) + 1 / len(hit))
                    error = math.sqrt(max(np.var(means, ddof=1), least) / len(means))
                    below = (np.mean(means) - (1 - ALPHA)) / error
                    lowest = min(lowest, below)
                    exact = no_ties and calibration == "split" and score != "cqr, two radii"
                    wrong = below < -4 or (exact and below > 4)
                    errors += wrong
                    print(f"{world:18}{score:20}{calibration:24}{np.mean(means):8.4f}{below:8.1f}"
                          f"{'  WRONG' if wrong else ''}", flush=True)
    print(f"{settings} settings, {settings * arguments.calibrations} calibrations, lowest z "
          f"{lowest:.1f}, {errors} wrong; law: {rows_judged} rows, {broken} broken")
    return 1 if errors or broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
