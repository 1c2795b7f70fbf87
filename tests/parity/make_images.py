#!/usr/bin/env python3
"""Decodes the ImageNet JPEGs of FCP_DATA_DIR into one array, cropped as the network expects, so that
the network's accuracy can be measured without an image library.

    make_images.py FOLDER

Writes images.npy [1000, 224, 224, 3] bytes and labels.npy. Exit code 77 (skipped) without the data."""

import csv
import os
import pathlib
import sys

CROP = 224


def main():
    source = pathlib.Path(os.environ.get("FCP_DATA_DIR", "")) / "imagenet_val1000"
    if not os.environ.get("FCP_DATA_DIR") or not (source / "labels.csv").exists():
        print("skipped: FCP_DATA_DIR has no imagenet_val1000")
        return 77
    try:
        import numpy as np
        from PIL import Image
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    folder = pathlib.Path(sys.argv[1])
    if (folder / "labels.npy").exists():
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    with open(source / "labels.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    images = np.empty((len(rows), CROP, CROP, 3), np.uint8)
    for image, row in zip(images, rows):
        pixels = np.asarray(Image.open(source / row["file"]).convert("RGB"))
        top, left = ((size - CROP) // 2 for size in pixels.shape[:2])
        image[:] = pixels[top : top + CROP, left : left + CROP]
    np.save(folder / "images.npy", images)
    np.save(folder / "labels.npy", np.array([int(row["label"]) for row in rows], np.int64))
    return 0


if __name__ == "__main__":
    sys.exit(main())
