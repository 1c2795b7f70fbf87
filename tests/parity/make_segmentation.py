#!/usr/bin/env python3
"""What PyTorch predicts, pixel by pixel, with the Cityscapes network beside FCP_DATA_DIR.

    make_segmentation.py FOLDER

The network is torchvision's FCN with the weights of the ONNX file: nothing of the graph is used.
Writes images.npy [N, 256, 512, 3] and labels.npy [N, 256, 512] (0: unlabelled), both bytes, and
classes.npy, PyTorch's classes 1 to 19, for the first N calibration images. Exit code 77 (skipped):
the data or a Python package is missing."""

import csv
import itertools
import os
import pathlib
import sys

try:
    import numpy as np
    import onnx
    import onnx.numpy_helper
    import torch
    import torchvision
    from PIL import Image
except ImportError as missing:
    print(f"skipped: {missing}; needed are numpy, onnx, torch, torchvision and Pillow")
    sys.exit(77)

import references

IMAGES = 20
MEAN = (0.485, 0.456, 0.406)
DEVIATION = (0.229, 0.224, 0.225)
DATA = pathlib.Path(os.environ.get("FCP_DATA_DIR", ""))
SOURCE = DATA / "cityscapes"
MODEL = DATA.parent / "models/cityscapes_fcn_resnet50.onnx"


def trained_network():
    network = torchvision.models.segmentation.fcn_resnet50(
        weights=None, weights_backbone=None, num_classes=20, aux_loss=False)
    for module in network.backbone.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.eps = 1e-3  # as Keras, from where the backbone's weights come
    weights = {}
    for tensor in onnx.load(str(MODEL)).graph.initializer:
        name = tensor.name.removesuffix("_fp16")
        name = name.replace("encoder.", "backbone.", 1).replace("g.", "classifier.", 1)
        weights[name] = torch.from_numpy(onnx.numpy_helper.to_array(tensor).astype(np.float32))
    del weights["up.scales"]
    for block in (f"backbone.layer{stage}.0." for stage in (1, 2, 3, 4)):
        # The two biases feed one sum and were trained alike; the file holds them once.
        weights[block + "downsample.1.bias"] = weights[block + "bn3.bias"]
    counters = {name: value for name, value in network.state_dict().items()
                if name.endswith("num_batches_tracked")}
    network.load_state_dict({**weights, **counters})
    return network.eval()


def write_all(folder):
    with open(SOURCE / "split.csv", newline="", encoding="utf-8") as file:
        names = [row["file"] for row in itertools.islice(csv.DictReader(file), IMAGES)]
    images = np.stack([np.asarray(Image.open(SOURCE / "images" / f"{name}.jpg").convert("RGB"))
                       for name in names])
    labels = np.stack([np.asarray(Image.open(SOURCE / "labels" / f"{name}.png"))
                       for name in names])
    network = trained_network()
    classes = np.empty(labels.shape, np.uint8)
    for image, row in zip(images, classes):
        pixels = (torch.from_numpy(image.copy()) / 255 - torch.tensor(MEAN)) / torch.tensor(DEVIATION)
        with torch.no_grad():
            output = network(pixels.permute(2, 0, 1).unsqueeze(0))["out"][0]
        row[:] = 1 + output[1:].argmin(0).numpy()  # a class is the more likely the lower its output
    right = ((classes == labels) & (labels > 0)).sum()
    print(f"PyTorch: {right} of {(labels > 0).sum()} labelled pixels right")
    for name, array in (("images", images), ("labels", labels), ("classes", classes)):
        np.save(folder / f"{name}.npy", array)


def main():
    if not os.environ.get("FCP_DATA_DIR") or not SOURCE.exists() or not MODEL.exists():
        print("skipped: FCP_DATA_DIR has no cityscapes, or no models beside it")
        sys.exit(77)
    references.make_once(pathlib.Path(sys.argv[1]), [pathlib.Path(__file__)], torch.__version__,
                         write_all)


if __name__ == "__main__":
    main()
