"""The files that the commands read: tables, arrays, images and networks, from fixed seeds."""
import gzip
import os
import random
import struct
import zipfile
import zlib

import onnx_files

COLUMNS = ("a", "b", "c", "d")
REGIONS = ("north", "south", "west")


def write(folder, name, content):
    path = os.path.join(folder, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())


def table(header, rows, separator=","):
    return "".join(separator.join(map(str, row)) + "\n" for row in [header, *rows])


def npy(rows, kind="<f4"):
    """An array of rows, or of numbers."""
    flat = not isinstance(rows[0], (list, tuple))
    values = rows if flat else [value for row in rows for value in row]
    shape = f"({len(rows)},)" if flat else f"({len(rows)}, {len(rows[0])})"
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    body = struct.pack("<%d%s" % (len(values), {"<f4": "f", "<i8": "q"}[kind]), *values)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def npz(path, **arrays):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in arrays.items():
            archive.writestr(zipfile.ZipInfo(name + ".npy", (2000, 1, 1, 0, 0, 0)), data)


def png(pixels):
    """A PNG of rows of (r, g, b)."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data +
                struct.pack(">I", zlib.crc32(kind + data)))
    header = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(v for pixel in row for v in pixel) for row in pixels)
    # Stored, not packed: what zlib makes of the same bytes depends on its version.
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b""))


def number_rows(count, seed, shift=0.0):
    """a, b, c, d and an answer whose noise grows with |b|; every 17th row repeats the one before."""
    chance = random.Random(seed)
    rows = []
    for i in range(count):
        x = [round(chance.gauss(shift, 1), 3) for _ in COLUMNS]
        if i % 17 == 16:
            x = rows[-1][:4]
        y = 3 * x[0] + x[1] * x[2] + (0.3 + abs(x[1])) * chance.gauss(0, 1)
        rows.append([*x, round(y, 3)])
    return rows


def write_numbers(folder):
    sets = {"train": number_rows(400, 1), "cal": number_rows(300, 2), "test": number_rows(100, 3)}
    write(folder, "train.csv", table([*COLUMNS, "y"], sets["train"]))
    for name, rows in list(sets.items())[1:]:
        chance = random.Random(len(rows))
        more = [[*row, REGIONS[chance.randrange(3)], round(1 / (1 + abs(row[0])), 4),
                 f"2026-{1 + i // 28 % 12:02d}-{1 + i % 28:02d}", f"id{i}"]
                for i, row in enumerate(rows)]
        write(folder, name + ".csv", table([*COLUMNS, "y", "region", "w", "day", "id"], more))
        write(folder, f"x_{name}.npy", npy([row[:4] for row in rows]))
        write(folder, f"y_{name}.npy", npy([row[4] for row in rows]))
        write(folder, f"groups_{name}.npy", npy([i % 4 for i in range(len(rows))], "<i8"))
        write(folder, f"weights_{name}.npy", npy([row[6] for row in more]))
    write(folder, "cal.csv.gz", gzip.compress(
        table([*COLUMNS, "y"], sets["cal"]).encode(), mtime=0))
    npz(os.path.join(folder, "cal.npz"), x=npy([row[:4] for row in sets["cal"]]),
        y=npy([row[4] for row in sets["cal"]]))
    many = number_rows(700, 4)  # as many as it takes to learn heads
    write(folder, "heads.csv", table([*COLUMNS, "y"], many))
    write(folder, "x_many.npy", npy([row[:4] for row in many]))
    write(folder, "y_many.npy", npy([row[4] for row in many]))
    write(folder, "y2_test.npy", npy([[row[4], 50 * row[4] + row[0]] for row in sets["test"]]))
    write(folder, "shifted.csv", table(COLUMNS, [row[:4] for row in number_rows(150, 5, 0.7)]))
    write(folder, "more.csv", table([*COLUMNS, "y", "region"], [
        [*row, REGIONS[i % 3]] for i, row in enumerate(number_rows(80, 6))]))
    write(folder, "few.csv", table([*COLUMNS, "y"], number_rows(8, 7)))
    write(folder, "rows.txt", "".join(" ".join(map(str, row[:4])) + "\n" for row in
                                      number_rows(6, 19)) + "1 2\nnumbers 3 4 5\n0 0 0 0\n")
    # Groups that calibration does not have, and a group of one row.
    odd = [[*row, "east" if i % 5 == 0 else "north"] for i, row in enumerate(number_rows(20, 8))]
    write(folder, "odd.csv", table([*COLUMNS, "y", "region"], odd))
    changed = [[*row[:4], round(row[4] + (8 if i > 120 else 0) * (1 if i % 2 else -1), 3),
                f"2026-{1 + i // 28:02d}-{1 + i % 28:02d}"]
               for i, row in enumerate(number_rows(200, 9))]
    write(folder, "log.csv", table([*COLUMNS, "y", "day"], changed))
    two = [[*row, round(100 * row[4] + 50 * row[3], 2)] for row in number_rows(620, 10)]
    for name, part in (("train2", two[:300]), ("cal2", two[300:540]), ("test2", two[540:])):
        write(folder, name + ".csv", table([*COLUMNS, "y", "z"], part))


def write_classes(folder):
    """Four corners; the class as a number, and as a name."""
    chance = random.Random(11)
    names = ("elm", "fir", "oak", "yew")
    rows = []
    for _ in range(900):
        kind = chance.choices(range(4), (4, 3, 2, 1))[0]
        a, b = chance.gauss(2 * (kind % 2), 0.9), chance.gauss(2 * (kind // 2), 0.9)
        rows.append([round(a, 3), round(b, 3), "left" if a < 1 else "right", kind])
    header = ["a", "b", "side", "kind"]
    for name, part in (("ktrain", rows[:400]), ("kcal", rows[400:760]), ("ktest", rows[760:])):
        write(folder, name + ".csv", table(header, part))
        write(folder, f"x_{name}.npy", npy([row[:2] for row in part]))
        write(folder, f"y_{name}.npy", npy([row[3] for row in part], "<i8"))
    write(folder, "trees.csv", table(header, [[*row[:3], names[row[3]]] for row in rows[:500]]))
    write(folder, "fewtrees.csv", table(header, [[*row[:3], names[row[3]]] for row in rows[500:640]]))
    write(folder, "unknown.csv", table(header, [
        [*row[:3], "ash" if i % 9 == 0 else names[row[3]]] for i, row in enumerate(rows[640:720])]))


def home_rows(count, seed):
    """As people keep them: dates, decimal commas, categories, a count of rows, missing cells."""
    chance = random.Random(seed)
    rows = []
    for i in range(count):
        size, kind = chance.uniform(20, 200), chance.choice(["flat", "house", "loft"])
        price = 2 * size + {"flat": 0, "house": 80, "loft": 40}[kind] + chance.gauss(0, 5)
        rows.append([i, f"{chance.randint(1, 28):02d}.{chance.randint(1, 12):02d}.2023",
                     kind if chance.random() > 0.05 else "",
                     f"{size:.1f}".replace(".", ",") if chance.random() > 0.03 else "",
                     chance.choice(["True", "False"]), f"owner{chance.randrange(60)}",
                     f"{price:.2f}".replace(".", ",")])
    return rows


def write_homes(folder):
    header = ["", "sold", "kind", "size", "lift", "owner", "price"]
    rows = home_rows(420, 12)
    for row in rows[:15]:
        row[6] = ""  # no answer
    write(folder, "homes.csv", "\ufeff" + table(header, rows, ";"))
    new = home_rows(40, 13)
    new[0][2], new[1][3] = "castle", ""
    write(folder, "newhomes.csv", table(header[:6], [row[:6] for row in new], ";"))
    write(folder, "latehomes.csv", table(header, home_rows(60, 14), ";"))
    bad = home_rows(120, 15)
    bad[3][3], bad[5][6], bad[8][1] = "large", "soon", "1.1.2023;more"
    write(folder, "badhomes.csv", table(header, bad, ";"))


def write_several_inputs(folder):
    chance = random.Random(16)
    for name, count in (("icaltwo", 120), ("itesttwo", 40)):
        ids = [[chance.randrange(10) for _ in range(3)] for _ in range(count)]
        x = [[round(chance.gauss(0, 1), 3) for _ in range(2)] for _ in range(count)]
        y = [round(sum(i) / 10 + v[0] + chance.gauss(0, 0.5), 3) for i, v in zip(ids, x)]
        npz(os.path.join(folder, name + ".npz"), ids=npy(ids, "<i8"), x=npy(x), y=npy(y))
        if name == "itesttwo":
            write(folder, "ids_test.npy", npy(ids, "<i8"))
            write(folder, "x2_test.npy", npy(x))
        write(folder, name + ".csv", table(
            ["x_0", "x_1", "y", "ids_0", "ids_1", "ids_2"],
            [[*v, answer, *i] for i, v, answer in zip(ids, x, y)]))
    rows = [[chance.choice(["Oslo", "Rome", "Ulm", "Bonn"]), chance.randint(18, 90),
             round(chance.gauss(0, 1), 3)] for _ in range(120)]
    write(folder, "cities.csv", table(["city", "age", "y"], rows))


def write_images(folder):
    chance = random.Random(17)
    names = ("blue", "green", "red")
    for part, count in (("photos", 25), ("newphotos", 8)):
        lines = []
        for kind, name in enumerate(names):
            for i in range(count):
                pixels = [[[min(255, max(0, int(chance.gauss(150 if c == 2 - kind else 110, 60))))
                            for c in range(3)] for _ in range(6)] for _ in range(6)]
                write(folder, f"{part}/{name}/{i:02d}.png", png(pixels))
                lines.append([f"{part}/{name}/{i:02d}.png", name])
        write(folder, part + ".csv", table(["file", "kind"], lines))
    write(folder, "names.txt", "red\ngreen\nblue\n")


def write_bad(folder):
    rows = number_rows(30, 18)
    header = [*COLUMNS, "y"]
    write(folder, "empty.csv", "")
    write(folder, "header.csv", table(header, []))
    write(folder, "ragged.csv", table(header, [row[:4] if i == 3 else row
                                               for i, row in enumerate(rows)]))
    write(folder, "text.csv", table(header, [[*row[:2], "many", *row[3:]] if i == 6 else row
                                             for i, row in enumerate(rows)]))
    write(folder, "holes.csv", table(header, [["", *row[1:]] if i == 9 else row
                                              for i, row in enumerate(rows)]))
    write(folder, "nan.npy", npy([row[:4] if i != 4 else [float("nan"), 0, 0, 0]
                                  for i, row in enumerate(rows)]))
    write(folder, "narrow.npy", npy([row[:3] for row in rows]))
    write(folder, "broken.onnx", b"this is no network")
    write(folder, "unknown_operator.onnx", onnx_files.unknown_operator())
    write(folder, "leaking.onnx", onnx_files.leaking())
    write(folder, "x1.npy", npy([[i / 10] for i in range(20)]))


def write_all(folder):
    write_numbers(folder)
    write_classes(folder)
    write_homes(folder)
    write_several_inputs(folder)
    write_images(folder)
    write_bad(folder)
    for name, data in (("plain", onnx_files.perceptron()), ("plain2", onnx_files.perceptron(8, 2)),
                       ("logits", onnx_files.perceptron(9, 4)),
                       ("spreads", onnx_files.with_spread()),
                       ("ends", onnx_files.with_quantiles()),
                       ("attention", onnx_files.with_attention()),
                       ("inputs", onnx_files.with_several_inputs()),
                       ("text", onnx_files.with_text()), ("colours", onnx_files.colours()),
                       ("convolution", onnx_files.convolution())):
        write(folder, name + ".onnx", data)
