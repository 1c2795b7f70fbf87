"""Feature CP in eager PyTorch: as the official code does it, and as a good user would write it.

Official: every one of 200 steps is walked with an optimiser and backward(), which also fills the
gradients of the weights, and auto_LiRPA builds the band of the validation rows anew for each; M is
looked for afterwards. Official with plain bounds: the same, but the bands are interval arithmetic
written by hand. Careful: gradients for the feature alone, plain bounds, one trajectory, and the walk
ends at the first M that passes. All rows are one batch.
"""

import math

import numpy as np
import torch
from torch import nn

try:
    from auto_LiRPA import BoundedModule, BoundedTensor, PerturbationLpNorm
except ImportError:
    BoundedModule = None

MOST_STEPS = 200
LEVEL = 0.1


def load(folder):
    """Backbone, head, and the folds of a folder that `feature_cp prepare` made."""
    def read(name):
        return torch.from_numpy(np.load(folder / f"{name}.npy"))

    weights = {path.stem: torch.from_numpy(np.load(path)) for path in folder.glob("layer*.npy")}
    layers = []
    for number in range(1, 5):
        weight, bias = weights[f"layer{number}.weight"], weights[f"layer{number}.bias"]
        layer = nn.Linear(weight.shape[1], weight.shape[0])
        layer.weight.data, layer.bias.data = weight, bias.reshape(-1)
        layers += [layer, nn.ReLU()]
    backbone, head = nn.Sequential(*layers[:4]), nn.Sequential(*layers[4:7])
    folds = [read(name) for name in ("x_cal", "y_cal", "x_test", "y_test")]
    return backbone, head, [fold.reshape(len(fold), -1) for fold in folds]


def quantile(scores):
    rank = math.ceil((1 - LEVEL) * (len(scores) + 1))
    return torch.sort(scores)[0][min(rank, len(scores)) - 1].item()


def band(head, features, radius):
    """Interval bound propagation over the ball of the largest norm."""
    first, last = head[0], head[2]
    center, reach = first(features), radius * first.weight.abs().sum(1)
    low, high = torch.relu(center - reach), torch.relu(center + reach)
    middle, half = (low + high) / 2, (high - low) / 2
    center, reach = last(middle), half @ last.weight.abs().T
    return center - reach, center + reach


def lirpa_band(head, features, radius):
    """The same by auto_LiRPA, which reads the head anew, as the official code has it."""
    bounded = BoundedModule(head, torch.empty_like(features))
    ball = BoundedTensor(features, PerturbationLpNorm(norm=math.inf, eps=radius))
    return bounded.compute_bounds(x=(ball,), method="IBP")


def official_walk(head, features, truth, rate, steps, record=False):
    u = features.detach().clone().requires_grad_()
    optimiser = torch.optim.SGD([u], lr=rate)
    distances = []
    for _ in range(steps):
        optimiser.zero_grad()
        ((head(u) - truth) ** 2).sum().backward()
        optimiser.step()
        if record:
            distances.append((u.detach() - features).abs().amax(1))
    return u.detach(), distances


def careful_walk(head, features, truth, rate, steps):
    """Yields the feature after every step."""
    u = features
    for _ in range(steps):
        u = u.detach().requires_grad_()
        gradient, = torch.autograd.grad(((head(u) - truth) ** 2).sum(), u)
        u = (u - rate * gradient).detach()
        yield u


def covered(head, features, truth, radius, bounds=band):
    with torch.no_grad():
        lower, upper = bounds(head, features, radius)
        return ((lower <= truth) & (truth <= upper)).all(1).float().mean().item()


def choose_official(head, z, y, validation, rate, bounds):
    _, distances = official_walk(head, z[validation:], y[validation:], rate, MOST_STEPS, True)
    shares = [covered(head, z[:validation], y[:validation], quantile(d), bounds) for d in distances]
    return next(step for step, share in enumerate(shares, 1) if share > 1 - LEVEL)


def choose_careful(head, z, y, validation, rate):
    start = z[validation:]
    walk = careful_walk(head, start, y[validation:], rate, MOST_STEPS)
    for step, u in enumerate(walk, 1):
        radius = quantile((u - start).abs().amax(1))
        if covered(head, z[:validation], y[:validation], radius) > 1 - LEVEL:
            return step
    raise ValueError("no number of steps passes")


def scores_of(head, z, y, rate, steps, official):
    if official:
        u, _ = official_walk(head, z, y, rate, steps)
    else:
        *_, u = careful_walk(head, z, y, rate, steps)
    return (u - z).abs().amax(1)


# How a stage may be done, with its name in the table.
OFFICIAL, PLAIN_BOUNDS, CAREFUL = "official", "official, plain bounds", "careful"
WAYS = (OFFICIAL, PLAIN_BOUNDS, CAREFUL) if BoundedModule else (PLAIN_BOUNDS, CAREFUL)


def stage(backbone, head, folds, rate, way):
    """Choose M, calibration scores, test bands, detection → M, radius, detected, intervals."""
    x_cal, y_cal, x_test, y_test = folds
    bounds, official = lirpa_band if way == OFFICIAL else band, way != CAREFUL
    with torch.no_grad():
        z, z_test = backbone(x_cal), backbone(x_test)
    validation = len(z) // 5
    steps = (choose_official(head, z, y_cal, validation, rate, bounds) if official else
             choose_careful(head, z, y_cal, validation, rate))
    radius = quantile(scores_of(head, z, y_cal, rate, steps, official))
    with torch.no_grad():
        intervals = torch.cat(bounds(head, z_test, radius), 1)
    detected = (scores_of(head, z_test, y_test, rate, steps, official) < radius).sum().item()
    return steps, radius, detected, intervals


def linearized(backbone, head, folds):
    """Fast Feature CP: radius and intervals of μ ± r‖∇g‖₁."""
    x_cal, y_cal, x_test, _ = folds

    def tangent(x):
        with torch.no_grad():
            z = backbone(x)
        z.requires_grad_()
        answer = head(z)
        gradient, = torch.autograd.grad(answer.sum(), z)
        return answer.detach(), gradient.abs().sum(1, keepdim=True)

    answer, slope = tangent(x_cal)
    radius = quantile(((y_cal - answer).abs() / slope).flatten())
    answer, slope = tangent(x_test)
    return radius, torch.cat((answer - radius * slope, answer + radius * slope), 1)
