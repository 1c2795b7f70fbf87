"""Exports a PyTorch module as people do, by the older or the newer of its exporters.

Used by zoo.py and by benchmarks/forward_networks.py.
"""


def export_onnx(module, example, names, path, exporter):
    """Writes `path`: inputs `names` whose first axis is the batch, and the output y.

    `example` has one tensor for each input; `exporter` is "old" (operator set 17) or "new"."""
    import torch

    if exporter == "old":
        torch.onnx.export(module, example, path, dynamo=False, opset_version=17, input_names=names,
                          output_names=["y"], dynamic_axes={name: {0: "batch"} for name in names})
        return
    batch = torch.export.Dim("batch", min=1, max=4096)
    torch.onnx.export(module, example, path, dynamo=True, input_names=names, output_names=["y"],
                      verbose=False, external_data=False,
                      dynamic_shapes=tuple({0: batch} for _ in names))
