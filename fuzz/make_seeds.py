#!/usr/bin/env python3
"""Writes the first inputs of the fuzzing targets, some small and sound files of each kind:

    make_seeds.py FOLDER        makes FOLDER/csv, FOLDER/npy and so on, one folder per target

The networks are the cases that ONNX publishes for the operators fcp supports."""
import gzip
import io
import pathlib
import struct
import sys
import zlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests/parity"))

TABLES = [
    b"a,b,y\n1,2,3\n4,5,6\n",
    b"1;2;3\r\n-4;5e-3;inf\r\n",
    b'name,"with ""quotes""",y\nred,1,2\n"blue, dark",,4\nred,NA,6\n',
    b"\xef\xbb\xbfx\ty\n.5\t+7\n\n0x1\t1e400\n",
    b"0,1\nnan,?\n,2\n",
]
SETTINGS = (
    '{"format":2,"score":"%s","cut":"x","output":"","normalize":"","low":"","high":"",'
    '"asymmetric":false,"norm":"inf","bound":"crown","iterations":20,"rate":0.1,"outward":false,'
    '"floor":0.5,"slope":1.5,"steps":10,"step_rate":0.01,"adam":true,"paper":false,'
    '"loss_weights":[1.0],"temperature":1.0,"randomized":true,"rank_weight":0.0,"rank_free":0,'
    '"samples":1000,"seed":0,"calibration":{"name":"%s","group":"","bandwidth":0.5,"seed":0,'
    '"paper":false,"group_names":["a","b"]}}'
)


def tables():
    for choice in (0, 3, 8, 32, 35):
        for text in TABLES:
            yield bytes([choice]) + text
    yield b"\0" + gzip.compress(TABLES[0])


def schemas():
    """A byte that chooses, a line of types, a table."""
    table = b"when,kind,price,flag,y\n2024-01-31,red,$1,true,1\n2024-02-01,blue,,false,2\n" \
        b"2024-02-03,red,$3,true,3\n"
    for choice in (0, 1, 2, 32, 40, 48, 56):
        yield bytes([choice]) + b"\n" + table
    yield b"\x22when=date,kind=category,price=number:point,flag=drop\n" + table
    yield b"\x24c=date:dmy\nc;z\n31/01/2024;1,5\n01/02/2024;2\n"


def arrays():
    values = np.arange(12).reshape(3, 4)
    kinds = ["<f4", ">f8", "<f2", "<i8", "|u1", "|b1", ">i2"]
    for kind in kinds:
        yield npy(values.astype(kind))
    yield npy(np.asfortranarray(values.astype("<f4")))
    yield npy(np.float32(3))
    yield npy(np.zeros((0, 4), "<f4"))
    for save in (np.savez, np.savez_compressed):
        file = io.BytesIO()
        save(file, x=values.astype("<f4"), y=np.arange(3.0))
        yield file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def networks():
    import make_op_cases
    from onnx import helper, numpy_helper

    cases, _ = make_op_cases.published_cases(make_op_cases.supported_ops())
    for _, _, model, inputs, _ in cases:
        small = all(np.size(array) <= 64 for array in inputs)
        if small:
            yield model.SerializeToString()
        # The same with constant inputs, so that the operator runs when constants are folded.
        if small and len(inputs) == len(model.graph.input):
            for value, array in zip(model.graph.input, inputs):
                tensor = numpy_helper.from_array(np.ascontiguousarray(array), value.name)
                model.graph.initializer.append(tensor)
            del model.graph.input[:]
            yield model.SerializeToString()
    weights = helper.make_tensor("w", 1, [2, 2], [1.0, 2.0, 3.0, 4.0])
    dense = helper.make_node("MatMul", ["x", "w"], ["y"])
    value = [helper.make_tensor_value_info(name, 1, ["n", 2]) for name in "xy"]
    graph = helper.make_graph([dense], "g", value[:1], value[1:], [weights])
    yield helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString()


def encodings():
    yield (b'{"header":true,"width":3,"columns":["a","b","c"],"positions":[0,1,2],'
           b'"categories":[[],["red","blue"],[]],"means":[1.5,0.0,2.5]}')
    yield (b'{"header":false,"width":1,"columns":["0"],"positions":[0],"categories":[[]],'
           b'"means":[]}')


def images():
    from PIL import Image

    values = (np.arange(7 * 9 * 4) * 37 % 256).astype(np.uint8).reshape(7, 9, 4)
    pictures = {mode: Image.fromarray(values[..., :count].squeeze(), mode)
                for mode, count in (("L", 1), ("RGB", 3), ("RGBA", 4), ("CMYK", 4))}
    for mode in ("L", "RGB", "CMYK"):
        for options in ({}, {"progressive": True}, {"subsampling": 2, "quality": 30}):
            yield image_bytes(pictures[mode], "JPEG", **options)
    for picture in (pictures["L"], pictures["RGB"], pictures["RGBA"], pictures["L"].convert("1"),
                    pictures["RGB"].quantize(5), pictures["L"].convert("I;16")):
        yield image_bytes(picture, "PNG")
    # An interlaced file, which Pillow does not write: the flag alone, over data of another order.
    plain = bytearray(image_bytes(pictures["L"], "PNG"))
    plain[28] = 1
    plain[29:33] = struct.pack(">I", zlib.crc32(bytes(plain[12:29])))
    yield bytes(plain)


def image_bytes(picture, kind, **options):
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def calibrations():
    scores = struct.pack("<4d", -1.0, 0.5, 2.0, float("inf"))
    for score, calibration in (("nested", "split"), ("residual", "grouped"),
                               ("linearized", "localized"), ("nested", "weighted"),
                               ("surrogate", "split")):
        settings = (SETTINGS % (score, calibration)).encode()
        yield settings + b"\n" + b'{"rows":"12","seed":"0"}' + b"\n" + scores
    yield (SETTINGS % ("nested", "split")).encode() + b"\n{}\n"
    # Of 40 rows, the scores of two levels.
    levels = (SETTINGS % ("nested", "split")).replace('"format":2', '"format":3').replace(
        '"group_names":["a","b"]', '"group_names":[],"levels":["0.05","0.1"],"rows":40')
    yield levels.encode() + b"\n{}\n" + struct.pack("<2d", 0.5, 2.0)


def options():
    yield b"score=nested\nnorm=2\nbound=ibp\nfloor=0.5\ncut=h"
    yield b"score=spread\ncalibration=localized\nbandwidth=0.5"
    yield b"score=density\ncalibration=split"
    yield b"score=quantiles\ntail=0.1\n"
    yield b"score=raps\nrank_weight=0.1\nrank_free=2\ntemperature=1.5\nrandomized=false"
    yield b"score=surrogate\nsteps=3\nstep_rate=0.1\nadam=true\npaper=true"
    yield b"score=cqr\nasymmetric=true\ncalibration=grouped\ngroup=a"
    yield b"score=linearized\niterations=3\nbound=alpha-crown"


def ml():
    """A tree of two leaves, and its attributes in the order of fuzz_ml.cc."""
    tree = [(0, 3, [0, 0, 0]), (1, 3, [0, 1, 2]), (2, 3, [0, 0, 0]), (3, 4, [108, 100, 100]),
            (4, 5, [0, 4, 4]), (5, 3, [1, 0, 0]), (6, 3, [2, 0, 0]), (9, 3, [0, 0]),
            (10, 3, [1, 2]), (11, 3, [0, 0]), (12, 4, [116, 132])]
    text = bytes([0])
    for name, kind, values in tree:
        text += bytes([name, kind, len(values), *values])
    yield text + bytes([19, 0, 0, 1])
    for op in range(14):
        yield bytes([op, 30, 4, 2, 116, 84, 31, 4, 1, 100, 38, 4, 2, 100, 116, 39, 4, 2, 116, 116])


def requests():
    """Two bytes that choose, then what a client sends."""
    infer = (b'{"id":"7","parameters":{"alpha":"0.1,0.05"},"inputs":[{"name":"x","shape":[2,2],'
             b'"datatype":"FP32","data":[[1,2],[3,null]]},{"name":"c","shape":[2],"datatype":'
             b'"BYTES","data":["a","b"]}],"outputs":[{"name":"lower","parameters":'
             b'{"binary_data":true}}]}')
    yield b"\x05\x00" + infer
    yield b"\x03\x00POST /v2/models/m/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: h\r\n\r\n"
    yield (b"\x07\x00POST http://h/a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
           b"3;x=y\r\nabc\r\n1\r\nd\r\n0\r\nA: b\r\n\r\n\r\nHEAD /b HTTP/1.0\r\nConnection: a, keep-alive\r\n\r\n")
    packed = gzip.compress(infer, mtime=0)
    yield (b"\x11\x00POST / HTTP/1.1\r\nHost: h\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n"
           % len(packed) + packed)
    head = (b'{"inputs":[{"name":"x","shape":[1,2],"datatype":"FP32","parameters":'
            b'{"binary_data_size":8}}]}')
    head += b" " * (-len(head) % 4)
    yield bytes([1, len(head) // 4]) + head + struct.pack("<2f", 1, 2)
    yield b'\x09\x00{"feedback":[{"id":"a","row":1,"truth":[1,2.5]},{"id":"b","truth":"a"}]}'


def main():
    makers = {"csv": tables, "options": options, "ml": ml, "encoding": encodings, "npy": arrays,
              "graph": networks, "onnx": networks, "calibrated": calibrations, "image": images,
              "request": requests, "schema": schemas}
    for name, make in makers.items():
        folder = pathlib.Path(sys.argv[1]) / name
        folder.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(make()):
            (folder / f"seed_{number:04}").write_bytes(seed)


if __name__ == "__main__":
    main()
