#!/usr/bin/env python3
"""Asks ONNX whether the files that fcp wrote are sound, and compares them with their originals.

    check_written.py GOLDENS KIND   (the folder with networks/, ops/ and written/; one of the two)

Exit code 77: a Python package is missing, or nothing was written.
"""

import pathlib
import sys

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
except ImportError as missing:
    print(f"skipped: {missing}; the check needs numpy and onnx")
    sys.exit(77)


def attributes(node):
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def attribute_key(value):
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value).tolist()
    if isinstance(value, onnx.GraphProto):  # the shapes of its outputs are nobody's promise
        return (sorted(map(node_key, value.node)), [i.name for i in value.input],
                [o.name for o in value.output], [attribute_key(t) for t in value.initializer])
    return value


def node_key(node):
    values = {name: attribute_key(value) for name, value in attributes(node).items()}
    return (node.op_type, tuple(node.input), tuple(node.output), repr(sorted(values.items())))


def differences(original, written):
    """What the written model has lost or changed."""
    if sorted(map(node_key, original.graph.node)) != sorted(map(node_key, written.graph.node)):
        yield "nodes"
    before, after = ({t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
                     for model in (original, written))
    if before.keys() != after.keys():
        yield "names of initializers"
    elif not all(before[k].dtype == after[k].dtype and np.array_equal(before[k], after[k], True)
                 for k in before if before[k].dtype.kind == "f"):
        yield "values of initializers"
    for part in ("input", "output"):
        named = [[(i.name, i.type.tensor_type.elem_type,
                   [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim])
                  for i in getattr(model.graph, part)] for model in (original, written)]
        if named[0] != named[1]:
            yield f"{part}s: {named[0]} became {named[1]}"
    if original.opset_import[0].version != written.opset_import[0].version:
        yield "operator set"


def main():
    goldens = pathlib.Path(sys.argv[1])
    folder = goldens / "written" / sys.argv[2]
    files = sorted(folder.glob("*.onnx"))
    if not files:
        print(f"skipped: nothing written in {folder}")
        sys.exit(77)
    problems = []
    for file in files:
        model = onnx.load(str(file))
        if model.opset_import[0].version > onnx.defs.onnx_opset_version():
            continue  # newer than this ONNX
        try:
            onnx.checker.check_model(model, full_check=True)
        except Exception as problem:
            problems.append(f"{file.name}: {problem}")
        original = goldens / file.parent.name / file.stem / "model.onnx"
        if original.exists():
            changed = differences(onnx.load(str(original)), model)
            problems += [f"{file.name}: {text}" for text in changed]
    print(f"{len(files)} files, {len(problems)} problems", *problems, sep="\n")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
