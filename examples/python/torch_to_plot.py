# %% [markdown]
# # From a PyTorch network to intervals you can see
#
# Run it as a script, or cell by cell as a notebook. It takes seconds, and writes `intervals.onnx`
# and, where matplotlib is installed, `intervals.png` to the folder it runs in.

# %%
import numpy as np
import torch

import fcp

# %% [markdown]
# Prices, counts, minutes: large answers are also the uncertain ones. A length that is the same
# everywhere is too long on the left and too short on the right. Three folds: the rows that
# calibrate must not be those that trained.

# %%
random = np.random.default_rng(0)
x = random.uniform(-1, 2, size=(4000, 1)).astype(np.float32)
y = np.exp(1.2 * x[:, 0] + 0.25 * random.normal(size=4000)).astype(np.float32)
train, calibration, test = slice(0, 1500), slice(1500, 3000), slice(3000, 4000)

# %% [markdown]
# A network as one writes them in PyTorch. Nothing in it knows of conformal prediction.


# %%
class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = torch.nn.Sequential(
            torch.nn.Linear(1, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU()
        )
        self.head = torch.nn.Sequential(
            torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1)
        )

    def forward(self, x):
        return self.head(self.backbone(x))


torch.manual_seed(0)
network = Network()
optimizer = torch.optim.Adam(network.parameters(), lr=1e-2)
inputs, answers = torch.from_numpy(x[train]), torch.from_numpy(y[train, None])
for epoch in range(200):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(network(inputs), answers)
    loss.backward()
    optimizer.step()
print(f"training loss {loss.item():.3f}")

# %% [markdown]
# Calibration takes one line. `cut="backbone"` says where features are: behind the submodule of that
# name. The baseline is vanilla conformal prediction on the same network.

# %%
model = fcp.from_torch(network, x[:1], cut="backbone")
print(model)
methods = {
    "residual": fcp.FeatureConformalRegressor(model, method="residual"),
    "nested": fcp.FeatureConformalRegressor(model, method="nested", cut="auto"),
}
for name, method in methods.items():
    method.conformalize(x[calibration], y[calibration])
    found = method.evaluate(x[test], y[test], alpha=0.1)
    print(f"{name:9} covers {100 * found['coverage']:.1f} %, mean length {found['length']:.2f}")

# %% [markdown]
# Intervals in the shapes of MAPIE: rows, lower and upper, levels. Any level can be asked for, and
# one answer can be checked: how usual is it?

# %%
prediction, intervals = methods["nested"].predict_interval(x[test], alpha=[0.1, 0.5])
print("prediction", prediction.shape, "intervals", intervals.shape)
checked = methods["nested"].check([[0.0]], [4.0])
print(f"y = 4 at x = 0: p-value {checked.p_value[0]:.3f}, inside {bool(checked.inside[0])}")

# %% [markdown]
# For production: the intervals as outputs of a plain ONNX file, for any runtime.

# %%
methods["nested"].export("intervals.onnx", alpha=0.1)
print([name for name, _ in fcp.load("intervals.onnx").outputs])

# %%
try:
    from matplotlib import pyplot
except ImportError:
    print("no plot: matplotlib is not installed")
else:
    order = np.argsort(x[test, 0])
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for panel, (name, method) in zip(panels, methods.items()):
        middle, band = method.predict_interval(x[test], alpha=0.1)
        panel.plot(x[test, 0], y[test], ".", color="0.7", markersize=2)
        panel.fill_between(x[test][order, 0], band[order, 0, 0], band[order, 1, 0], alpha=0.3)
        panel.plot(x[test][order, 0], middle[order])
        panel.set_title(f"{name}: 90 % intervals")
    figure.savefig("intervals.png", dpi=120)
    print("intervals.png")
