"""The benchmark's networks in eager PyTorch: random weights, an input, and one timed forward."""

import time

import torch
import torchvision
from torch import nn


def make_resnet50():
    torch.manual_seed(0)
    network = torchvision.models.resnet50()
    for layer in network.modules():
        if isinstance(layer, nn.BatchNorm2d):  # as PyTorch makes them they would do nothing
            layer.running_mean.normal_(0, 0.2)
            layer.running_var.uniform_(0.8, 1.5)
    return network.eval(), torch.randn(8, 3, 224, 224)


def make_mlp():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64),
                            nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1),
                            nn.Linear(64, 1))
    return network.eval(), torch.randn(10000, 100)


NETWORKS = {"mlp": make_mlp, "resnet50": make_resnet50}


def export(network, x, path):
    """BatchNormalization stays in the file: what to make of it is fcp's decision."""
    torch.onnx.export(network, x, path, opset_version=13, input_names=["input"],
                      output_names=["output"], training=torch.onnx.TrainingMode.PRESERVE,
                      dynamic_axes={"input": {0: "batch"}, "output": {0: "batch"}})


def seconds_of_forward(network, x):
    start = time.perf_counter()
    with torch.inference_mode():
        network(x)
    return time.perf_counter() - start


def mean_absolute_output(network, x):
    with torch.inference_mode():
        return network(x).abs().mean().item()
