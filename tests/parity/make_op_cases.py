#!/usr/bin/env python3
"""Writes the tests that ONNX publishes for the operators fcp supports, and those of opset_cases.py.

    make_op_cases.py FOLDER

The list of operators is read from fcp's own table. Each case gets a folder with model.onnx,
input_K.npy and output_K.npy; index.json names them, with the tensors they stand for. Left out by
rule: cases with a type other than float16, float, double, int8 to int64, uint8 and bool, expanded
functions that use an operator fcp does not have, and what CONTESTED names. Exit code 77: a Python
package is missing.
"""

import json
import pathlib
import re
import sys
import warnings

try:
    import numpy as np
    import onnx
    from onnx.backend.test.case import node as onnx_cases
except ImportError as missing:
    print(f"skipped: {missing}; the operator cases need numpy and onnx")
    sys.exit(77)

import opset_cases
import references

HERE = pathlib.Path(__file__).resolve().parent
OLDEST, NEWEST = 7, 24  # onnx_reader.h
OPERATORS = HERE.parents[1] / "fcp/nn/ops/operators.inc"
TYPES = ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")
# Align the corners of 2.4 pixels where the output has 2; PyTorch and ONNX Runtime take the 2. And
# answers written down with four digits, which ONNX Runtime is 5e-5 to 8e-5 from as well.
CONTESTED = {"test_resize_downsample_scales_linear_align_corners",
             "test_resize_downsample_scales_cubic_align_corners", "test_gridsample_bicubic",
             "test_roialign_aligned_false", "test_roialign_aligned_true"}


def supported_ops():
    return set(re.findall(r'^FCP_OPERATOR\("ai.onnx", "(\w+)"', OPERATORS.read_text(), re.M))


def in_known_opset(model):
    """Brings the model into an operator set that fcp reads; False where it means nothing there.

    A case names the operator set that last changed the operator. Where that is older than what fcp
    reads, it holds unchanged in the oldest; where it is newer, the newest may know it all the same,
    because most changes add element types."""
    for opset in model.opset_import:
        if opset.domain in ("", "ai.onnx"):
            newer = opset.version > NEWEST
            opset.version = min(max(opset.version, OLDEST), NEWEST)
            if newer:
                try:
                    onnx.checker.check_model(model)
                except onnx.checker.ValidationError:
                    return False
    return True


def published_cases(ops):
    """(name, op, model, inputs, outputs) of ONNX's own tests, and the names of those left out."""
    for name, alias in (("float", float), ("int", int), ("bool", bool), ("object", object)):
        if name not in np.__dict__:
            setattr(np, name, alias)  # some of the tests were written for a NumPy that had these
    np.random.seed(0)
    kept, left_out = [], {}
    for case in onnx_cases.collect_testcases(""):
        nodes = case.model.graph.node
        inputs, outputs = case.data_sets[0]
        expanded = case.name.endswith("_expanded")
        op = kept[-1][1] if expanded and kept else nodes[0].op_type
        if expanded and case.name != kept[-1][0] + "_expanded":
            continue  # the expansion of a case that was not kept
        if not expanded and op not in ops:
            continue
        unknown = {node.op_type for node in nodes} - ops
        types = {getattr(array, "dtype", type(array)) for array in (*inputs, *outputs)}
        wrong = [str(t) for t in types if str(t) not in TYPES]
        if any(case.name == other[0] for other in kept):
            continue  # ONNX has a few names twice
        contested = ["contested"] if case.name in CONTESTED else []
        newer = [] if in_known_opset(case.model) else ["newer operator set"]
        if unknown or wrong or contested or newer:
            left_out[case.name] = ", ".join([*unknown, *wrong, *contested, *newer])
        else:
            kept.append((case.name, op, case.model, inputs, outputs))
    return kept, left_out


def write_case(name, op, model, inputs, outputs, folder):
    folder.mkdir()
    onnx.save(model, str(folder / "model.onnx"))
    for kind, arrays in (("input", inputs), ("output", outputs)):
        for k, array in enumerate(arrays):
            in_c_order = np.ascontiguousarray(array).reshape(np.shape(array))
            np.save(folder / f"{kind}_{k}.npy", in_c_order)
    return {"name": name, "op": op, "inputs": [i.name for i in model.graph.input],
            "outputs": [o.name for o in model.graph.output]}


def write_all(folder):
    warnings.filterwarnings("ignore")
    ops = supported_ops()
    kept, left_out = published_cases(ops)
    kept += list(opset_cases.cases())
    index = [write_case(*case, folder / case[0]) for case in kept]
    (folder / "index.json").write_text(json.dumps(index, indent=1))
    for name, reason in left_out.items():
        print(f"left out: {name} ({reason})")
    uncovered = ops - {case["op"] for case in index}
    print(f"{len(index)} cases, {len(left_out)} left out")
    if uncovered:
        sys.exit(f"no case for {', '.join(sorted(uncovered))}")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_op_cases.py FOLDER")
    scripts = [HERE / "make_op_cases.py", HERE / "opset_cases.py", OPERATORS]
    references.make_once(pathlib.Path(sys.argv[1]), scripts, onnx.__version__, write_all)


if __name__ == "__main__":
    main()
