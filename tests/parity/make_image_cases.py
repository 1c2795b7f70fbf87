#!/usr/bin/env python3
"""Writes small images of many kinds and what Pillow and torchvision make of them.

    make_image_cases.py FOLDER

Every line of cases.txt is KIND "FILE" "EXPECTED" [NUMBERS...]: the image, the .npy of the result and the
sizes asked for. With FCP_DATA_DIR some photographs are added. Exit code 77 (skipped) without the
packages."""

import os
import pathlib
import struct
import sys
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, interlace, raw, extra=b""):
    """A PNG of rows that are filtered and packed already; Pillow writes no 16-bit colour and no
    interlaced files."""
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra
            + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def rows(array):
    return b"".join(b"\0" + line.tobytes() for line in array)


def adam7(array):
    steps = [(0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2),
             (1, 0, 2, 1)]
    passes = [array[top::down, left::right] for top, left, down, right in steps]
    return b"".join(rows(p) for p in passes if p.size)


def write_images(folder, np, Image):
    random = np.random.default_rng(1)
    y, x = np.mgrid[0:61, 0:83]
    smooth = np.stack([128 + 100 * np.sin(x / 7 + y / 11), 3 * x, 4 * y], -1)
    noisy = np.clip(smooth + random.normal(0, 20, smooth.shape), 0, 255).astype(np.uint8)
    rgb = Image.fromarray(noisy)
    for name, options in {
        "420": {}, "444": {"subsampling": 0, "quality": 90}, "422": {"subsampling": 1},
        "progressive": {"progressive": True}, "rough": {"quality": 10}}.items():
        rgb.save(folder / f"jpeg_{name}.jpg", **options)
    rgb.convert("L").save(folder / "jpeg_grey.jpg")
    rgb.convert("CMYK").save(folder / "jpeg_cmyk.jpg")
    rgb.save(folder / "png_rgb.png")
    for mode in ["L", "LA", "1", "P"]:
        rgb.convert(mode).save(folder / f"png_{mode.lower()}.png")
    alpha = random.integers(0, 256, (61, 83, 1), np.uint8)
    Image.fromarray(np.concatenate([noisy, alpha], -1)).save(folder / "png_rgba.png")
    rgb.quantize(11).save(folder / "png_palette4.png", bits=4)
    rgb.quantize(200).save(folder / "png_palette_clear.png", transparency=7)
    rgb.save(folder / "png_rgb_clear.png", transparency=tuple(int(v) for v in noisy[3, 4]))
    wide = random.integers(0, 65536, (61, 83, 3)).astype(">u2")
    (folder / "png_rgb16.png").write_bytes(png(83, 61, 16, 2, 0, rows(wide)))
    (folder / "png_interlaced.png").write_bytes(png(83, 61, 8, 2, 1, adam7(noisy)))
    grey2 = random.integers(0, 256, (61, 21), np.uint8)  # four pixels a byte
    (folder / "png_grey2.png").write_bytes(png(83, 61, 2, 0, 0, rows(grey2)))
    return sorted(path.name for path in folder.iterdir() if path.suffix in {".jpg", ".png"})


def photographs():
    data = pathlib.Path(os.environ.get("FCP_DATA_DIR", "/nonexistent"))
    return sorted(data.glob("imagenet_val1000/*.jpg"))[:20] + sorted(
        data.glob("cityscapes/images/*.jpg"))[:5]


def main():
    try:
        import numpy as np
        from PIL import Image
        import torch
        from torchvision import transforms
    except ImportError as missing:
        print(f"skipped: {missing}")
        return 77
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    cases = []

    def add(kind, file, result, *numbers):
        name = f"{len(cases)}.npy"
        np.save(folder / name, np.ascontiguousarray(result))
        cases.append(" ".join([kind, f'"{file}"', f'"{folder / name}"', *map(str, numbers)]))

    names = write_images(folder, np, Image)
    for path in [folder / name for name in names] + photographs():
        add("decode", path, np.asarray(Image.open(path).convert("RGB")))
    for name in ["png_l.png", "png_p.png", "png_palette4.png"]:
        add("labels", folder / name, np.asarray(Image.open(folder / name)))
    rgb = Image.open(folder / "png_rgb.png")
    for height, width in [(61, 83), (20, 30), (200, 37), (7, 83), (61, 9), (122, 166), (1, 1), (300, 301)]:
        size = (width, height)
        add("bilinear", folder / "png_rgb.png", rgb.resize(size, Image.BILINEAR), height, width)
        add("nearest", folder / "png_rgb.png", rgb.resize(size, Image.NEAREST), height, width)
        add("crop", folder / "png_rgb.png", transforms.CenterCrop((height, width))(rgb), height, width)
    for size in [17, 61, 64, 255]:
        add("short", folder / "png_rgb.png", transforms.Resize(size)(rgb), size)
    usual = transforms.Compose([
        transforms.Resize(256), transforms.CenterCrop(224), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
    for path in [folder / "png_rgb.png", folder / "jpeg_420.jpg"] + photographs():
        add("transform", path, usual(Image.open(path).convert("RGB")).numpy())
    labels = np.repeat(np.repeat(np.random.default_rng(2).integers(0, 20, (6, 8)), 9, 0), 11, 1)
    Image.fromarray(labels.astype(np.uint8)).save(folder / "classes.png")
    one_hot = torch.full((20, *labels.shape), 1e-6)
    one_hot.scatter_(0, torch.from_numpy(labels)[None], 1 - 1e-6)
    add("blurred", folder / "classes.png", transforms.functional.gaussian_blur(one_hot, [7, 7]).numpy())
    (folder / "cases.txt").write_text("\n".join(cases) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
