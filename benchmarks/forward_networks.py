#!/usr/bin/env python3
"""Makes the networks whose forward against_onnxruntime.py measures: random weights, real sizes.

    forward_networks.py FOLDER [NAME …]

Writes FOLDER/NAME/model.onnx and, for each of its inputs, FOLDER/NAME/INPUT.npy. Needs PyTorch 2,
torchvision, timm, transformers, onnxscript; for trees scikit-learn and skl2onnx; the small networks
need PyTorch alone, the quantised one ONNX Runtime's quantiser too. Files that are there already are
left alone.
"""

import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "parity"))
from torch_export import export_onnx  # noqa: E402


def images(rows, side=224):
    return {"x": np.random.default_rng(0).normal(size=(rows, 3, side, side)).astype(np.float32)}


def fill_batch_norms(module):
    import torch

    for layer in module.modules():
        if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm):
            layer.running_mean.normal_(0, 0.2)
            layer.running_var.uniform_(0.8, 1.5)
    return module


def export(module, inputs, path, exporter="old"):
    import torch

    module = fill_batch_norms(module.eval())
    example = tuple(torch.from_numpy(rows[:2]) for rows in inputs.values())
    export_onnx(module, example, list(inputs), path, exporter)


def torchvision_network(name, rows, side=224):
    def make(path):
        import torchvision

        inputs = images(rows, side)
        export(getattr(torchvision.models, name)(weights=None), inputs, path)
        return inputs

    return make


def deeplab(path):
    import torch
    import torchvision

    class Classes(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = torchvision.models.segmentation.deeplabv3_resnet50(
                weights=None, weights_backbone=None)

        def forward(self, x):
            return self.network(x)["out"]

    inputs = images(2)
    export(Classes(), inputs, path)
    return inputs


def timm_network(name, rows, exporter="old"):
    def make(path):
        import timm

        inputs = images(rows)
        export(timm.create_model(name, pretrained=False), inputs, path, exporter)
        return inputs

    return make


def bert(exporter):
    def make(path):
        import torch
        import transformers

        class Logits(torch.nn.Module):
            def __init__(self):
                super().__init__()
                config = transformers.BertConfig(num_labels=2, attn_implementation="eager")
                self.network = transformers.BertForSequenceClassification(config)

            def forward(self, input_ids, attention_mask):
                return self.network(input_ids=input_ids, attention_mask=attention_mask).logits

        ids = np.random.default_rng(0).integers(30522, size=(4, 64))
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        export(Logits(), inputs, path, exporter)
        return inputs

    return make


def ft_transformer(path, columns=20, width=192, blocks=3):
    import torch

    class Network(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(columns, width))
            self.bias = torch.nn.Parameter(torch.randn(columns, width))
            self.first = torch.nn.Parameter(torch.randn(1, 1, width))
            layer = torch.nn.TransformerEncoderLayer(width, 8, 2 * width, activation="gelu",
                                                     dropout=0.0, batch_first=True,
                                                     norm_first=True)
            self.blocks = torch.nn.TransformerEncoder(layer, blocks, enable_nested_tensor=False)
            self.head = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.ReLU(),
                                            torch.nn.Linear(width, 1))

        def forward(self, x):
            tokens = x.unsqueeze(-1) * self.weight + self.bias
            first = self.first.expand(x.shape[0], -1, -1)
            return self.head(self.blocks(torch.cat([first, tokens], 1))[:, 0])

    inputs = {"x": np.random.default_rng(0).normal(size=(64, columns)).astype(np.float32)}
    export(Network(), inputs, path)
    return inputs


def forest(path, trees=500, columns=20):
    import skl2onnx
    from sklearn.ensemble import RandomForestRegressor

    random = np.random.default_rng(0)
    x = random.normal(size=(4096, columns)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.3 * random.normal(size=len(x))
    model = RandomForestRegressor(trees, max_depth=12, n_jobs=-1, random_state=0).fit(x, y)
    kinds = [("x", skl2onnx.common.data_types.FloatTensorType([None, columns]))]
    pathlib.Path(path).write_bytes(
        skl2onnx.to_onnx(model, initial_types=kinds, target_opset=17).SerializeToString())
    return {"x": x}


def boosted(path, rounds=500, columns=20):
    import skl2onnx
    from sklearn.ensemble import HistGradientBoostingRegressor

    random = np.random.default_rng(0)
    x = random.normal(size=(4096, columns)).astype(np.float32)
    y = x[:, 0] * x[:, 1] + np.sin(2 * x[:, 2]) + 0.3 * random.normal(size=len(x))
    model = HistGradientBoostingRegressor(max_iter=rounds, early_stopping=False).fit(x, y)
    pathlib.Path(path).write_bytes(skl2onnx.to_onnx(model, x[:1]).SerializeToString())
    return {"X": x}


def recurrent(kind, hidden=64, layers=1):
    """48 steps of 8 numbers, and the last state through a linear layer."""
    def make(path):
        import torch

        class Last(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cells = getattr(torch.nn, kind)(8, hidden, layers, batch_first=True)
                self.out = torch.nn.Linear(hidden, 1)

            def forward(self, x):
                return self.out(self.cells(x)[0][:, -1])

        inputs = {"x": np.random.default_rng(0).normal(size=(256, 48, 8)).astype(np.float32)}
        export(Last(), inputs, path)
        return inputs

    return make


def small_images():
    return {"x": np.random.default_rng(0).normal(size=(256, 1, 28, 28)).astype(np.float32)}


def small_cnn(path):
    from torch import nn

    network = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 64), nn.ReLU(), nn.Linear(64, 10))
    export(network, small_images(), path)
    return small_images()


def small_cnn_1d(path):
    from torch import nn

    network = nn.Sequential(
        nn.Conv1d(8, 32, 5, padding=2), nn.ReLU(), nn.Conv1d(32, 32, 5, padding=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 1))
    inputs = {"x": np.random.default_rng(0).normal(size=(256, 8, 48)).astype(np.float32)}
    export(network, inputs, path)
    return inputs


def lenet(path):
    from torch import nn

    network = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84),
        nn.ReLU(), nn.Linear(84, 10))
    export(network, small_images(), path)
    return small_images()


def small_resnet(path):
    """Three blocks of two convolutions on 32 x 32 images in colour, batch normalisation, sums."""
    from torch import nn

    class Block(nn.Module):
        def __init__(self, channels, filters, stride):
            super().__init__()
            self.main = nn.Sequential(
                nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters),
                nn.ReLU(), nn.Conv2d(filters, filters, 3, 1, 1, bias=False),
                nn.BatchNorm2d(filters))
            self.side = nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False),
                                      nn.BatchNorm2d(filters))

        def forward(self, x):
            return nn.functional.relu(self.main(x) + self.side(x))

    network = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1), nn.ReLU(), Block(16, 16, 1),
                            Block(16, 32, 2), Block(32, 64, 2), nn.AdaptiveAvgPool2d(1),
                            nn.Flatten(), nn.Linear(64, 10))
    inputs = images(128, 32)
    export(network, inputs, path)
    return inputs


def small_mobile(path):
    """Depthwise and pointwise convolutions in turn on 32 x 32 images in colour."""
    from torch import nn

    def pair(channels, filters, stride):
        return [nn.Conv2d(channels, channels, 3, stride, 1, groups=channels),
                nn.BatchNorm2d(channels), nn.ReLU6(), nn.Conv2d(channels, filters, 1),
                nn.BatchNorm2d(filters), nn.ReLU6()]

    network = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU6(),
                            *pair(16, 32, 1), *pair(32, 64, 2), *pair(64, 64, 1),
                            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    inputs = images(128, 32)
    export(network, inputs, path)
    return inputs


def mlp(path):
    from torch import nn

    network = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
                            nn.Linear(256, 10))
    inputs = {"x": np.random.default_rng(0).normal(size=(256, 64)).astype(np.float32)}
    export(network, inputs, path)
    return inputs


def quantized(make, form="QDQ", **options):
    """The network with 8-bit weights and activations: QuantizeLinear and DequantizeLinear around
    its operators, or operators of quantised numbers."""
    def make_quantized(path):
        from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
        from onnxruntime.quantization.shape_inference import quant_pre_process

        plain = path + ".float"
        inputs = make(plain)

        class Batches(CalibrationDataReader):
            def __init__(self):
                self.batches = iter([{name: rows[:128] for name, rows in inputs.items()}])

            def get_next(self):
                return next(self.batches, None)

        quant_pre_process(plain, plain)
        quantize_static(plain, path, Batches(), quant_format=getattr(QuantFormat, form), **options)
        pathlib.Path(plain).unlink()
        return inputs

    return make_quantized


NETWORKS = {
    "resnet50": torchvision_network("resnet50", 4),
    "deeplab": deeplab,
    "densenet121": torchvision_network("densenet121", 4),
    "ft_transformer": ft_transformer,
    "mobilenet_v3": torchvision_network("mobilenet_v3_large", 8),
    "bert": bert("old"),
    "bert_new": bert("new"),
    "convnext": timm_network("convnext_tiny", 4),
    "vit_tiny": timm_network("vit_tiny_patch16_224", 8),
    "vit_tiny_new": timm_network("vit_tiny_patch16_224", 8, "new"),
    "forest": forest,
    "boosted": boosted,
    "lstm": recurrent("LSTM"),
    "lstm_deep": recurrent("LSTM", 128, 2),
    "gru": recurrent("GRU"),
    "small_cnn": small_cnn,
    "small_cnn_1d": small_cnn_1d,
    "lenet": lenet,
    "small_resnet": small_resnet,
    "small_mobile": small_mobile,
    "mlp": mlp,
    "small_cnn_qdq": quantized(small_cnn),
    "small_cnn_qlinear": quantized(small_cnn, "QOperator"),
    "small_cnn_1d_qdq": quantized(small_cnn_1d),
    "lenet_qdq": quantized(lenet, per_channel=True),
    "small_resnet_qdq": quantized(small_resnet, per_channel=True),
    "small_mobile_qdq": quantized(small_mobile, per_channel=True),
    "mlp_qdq": quantized(mlp),
    "mlp_qlinear": quantized(mlp, "QOperator"),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or NETWORKS:
        target = folder / name
        if (target / "model.onnx").exists():
            continue
        target.mkdir(parents=True, exist_ok=True)
        if name not in ("forest", "boosted"):
            import torch

            torch.manual_seed(0)
        for key, rows in NETWORKS[name](str(target / "part.onnx")).items():
            np.save(target / f"{key}.npy", rows)
        (target / "part.onnx").rename(target / "model.onnx")
        print(f"{name}: made", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main()
