#!/usr/bin/env python3
"""Exports networks from PyTorch, with what PyTorch computes for them.

    make_networks.py FOLDER

Each network gets a folder with model.onnx, input.npy and output.npy. The tensor called `feature`
cuts the graph in two; feature.npy is its value, and gradient.npy the gradient of
sum(weight * head(v)) at v = feature, by PyTorch, weight being weight.npy. index.json lists the
folders. Does nothing where the folder was made by these very scripts. Exit code 77: a Python
package is missing.
"""

import json
import pathlib
import sys
import time
import warnings

try:
    import numpy as np
    import onnx
    import torch
    import torchvision  # noqa: F401
    from torch import nn
except ImportError as missing:
    print(f"skipped: {missing}; the goldens need numpy, torch, torchvision and onnx")
    sys.exit(77)

import networks
import references

HERE = pathlib.Path(__file__).resolve().parent


class WithFeature(nn.Module):
    """Gives the feature as a second output: this is how it gets its name in the ONNX graph."""

    def __init__(self, case):
        super().__init__()
        self.backbone, self.head = case.backbone, case.head
        self.separates = case.separates

    def forward(self, x):
        if not self.separates:
            return self.backbone(x)
        feature = self.backbone(x)
        return self.head(feature), feature


def randomize_batch_norm(network, shape):
    """Statistics near those of real activations, but not equal: BatchNormalization then matters,
    and activations keep their size through deep networks."""
    layers = [m for m in network.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    if not layers:
        return
    for layer in layers:
        layer.momentum = 1.0
    network.train()
    with torch.no_grad():
        network(torch.randn(4, *shape[1:]))
        for layer in layers:
            mean, var = layer.running_mean, layer.running_var
            mean += 0.3 * var.sqrt() * torch.randn_like(mean)
            var *= 0.7 + 0.7 * torch.rand_like(var)
            var += 0.1 * var.mean()
            layer.weight.uniform_(0.7, 1.3)
            layer.bias.normal_(0, 0.2)


def export(case, network, x, path):
    mode = torch.onnx.TrainingMode
    torch.onnx.export(
        network, x, path, opset_version=case.opset, input_names=["input"],
        output_names=["output", "feature"], do_constant_folding=True,
        dynamic_axes={"input": case.dynamic, "output": {0: "batch"}},
        training=mode.EVAL if case.fold_batch_norm else mode.PRESERVE)
    model = onnx.load(path)
    del model.graph.output[1]
    onnx.checker.check_model(model)
    onnx.save(model, path)


def write_case(case, folder):
    network = WithFeature(case)
    randomize_batch_norm(network, case.shape)
    network.eval()
    x = torch.randn(case.shape)
    with torch.no_grad():
        output, feature = network(x)
    folder.mkdir()
    export(case, network, x, str(folder / "model.onnx"))
    arrays = {"input": x, "output": output}
    if case.separates:
        v = feature.clone().requires_grad_()
        result = case.head(v)
        weight = torch.randn_like(result)
        (weight * result).sum().backward()
        arrays.update(feature=feature, weight=weight, gradient=v.grad)
    for name, array in arrays.items():
        np.save(folder / (name + ".npy"), array.detach().numpy())
    if not torch.isfinite(output).all() or output.abs().max() > 1e4 or output.abs().max() < 1e-3:
        sys.exit(f"{case.name}: the output is of size {output.abs().max()}, no good as a reference")
    return {"name": case.name, "separates": case.separates}


def write_all(folder):
    warnings.filterwarnings("ignore")
    torch.manual_seed(0)
    index = []
    for i, make in enumerate(networks.whole_networks() + networks.single_layers()):
        torch.manual_seed(i)
        start = time.time()
        case = make()
        index.append(write_case(case, folder / case.name))
        print(f"{case.name:24} {time.time() - start:6.2f} s", flush=True)
    (folder / "index.json").write_text(json.dumps(index, indent=1))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_networks.py FOLDER")
    scripts = [HERE / "make_networks.py", HERE / "networks.py"]
    references.make_once(pathlib.Path(sys.argv[1]), scripts, torch.__version__, write_all)


if __name__ == "__main__":
    main()
