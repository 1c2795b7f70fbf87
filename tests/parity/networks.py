"""The networks whose execution by fcp is compared with PyTorch's.

Each Case is a network cut in two by hand, so that PyTorch can differentiate the head alone. Weights
are random (the seed is fixed by the caller); what matters is the graph that the exporter makes.
"""

from dataclasses import dataclass, field

import torch
import torchvision
from torch import nn
from torch.nn import functional as F


@dataclass
class Case:
    name: str
    backbone: nn.Module
    head: nn.Module
    shape: tuple  # of the input, with the batch
    opset: int = 13
    fold_batch_norm: bool = False  # let the exporter fold BatchNormalization into Conv
    dynamic: dict = field(default_factory=lambda: {0: "batch"})
    separates: bool = True  # the feature tensor alone carries the input to the output


class Apply(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


class Attention(nn.Module):
    """Multi-head self-attention, written out."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):  # [N, T, W]
        n, t, w = x.shape
        qkv = self.qkv(x).reshape(n, t, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        weight = torch.softmax(q @ k.transpose(-2, -1) / (w // self.heads) ** 0.5, dim=-1)
        return self.out((weight @ v).transpose(1, 2).reshape(n, t, w))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(),
                                 nn.Linear(4 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Patches(nn.Module):
    """The first layer of a vision transformer: patches, class token, positions."""

    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 8, stride=8)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.position = nn.Parameter(torch.randn(1, 17, width))

    def forward(self, x):
        x = self.conv(x).flatten(2).transpose(1, 2)
        return torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.position


class Unet(nn.Module):
    """Skip connection around the cut, and sizes taken from the input: the feature alone is not
    enough to compute the output."""

    def __init__(self):
        super().__init__()
        self.inside = nn.Sequential(nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.ReLU())
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.last = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        skip = self.first(x)
        feature = self.inside(skip)
        up = F.interpolate(feature, size=x.shape[-2:], mode="bilinear", align_corners=False)
        return self.last(torch.cat([skip, up], 1)), feature


def mlp():
    return Case("mlp",
                nn.Sequential(nn.Linear(100, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 64),
                              nn.ReLU()),
                nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 1)),
                (7, 100))


def resnet(name, make, **options):
    net = make()
    return Case(name,
                nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2,
                              net.layer3),
                nn.Sequential(net.layer4, net.avgpool, nn.Flatten(), net.fc), (2, 3, 64, 64),
                **options)


def vgg16():
    # The convolutions are VGG-16's. The classifier keeps its form but not its 500 MB.
    net = torchvision.models.vgg16_bn()
    classifier = nn.Sequential(nn.Linear(512 * 4, 256), nn.ReLU(), nn.Dropout(),
                               nn.Linear(256, 256), nn.ReLU(), nn.Dropout(), nn.Linear(256, 100))
    return Case("vgg16", net.features[:34],
                nn.Sequential(net.features[34:], nn.AdaptiveAvgPool2d(2), nn.Flatten(), classifier),
                (2, 3, 64, 64), fold_batch_norm=True)


def shufflenet():
    net = torchvision.models.shufflenet_v2_x1_0()
    return Case("shufflenet_v2",
                nn.Sequential(net.conv1, net.maxpool, net.stage2, net.stage3),
                nn.Sequential(net.stage4, net.conv5, Apply(lambda x: x.mean([2, 3])), net.fc),
                (2, 3, 64, 64), opset=11)


def features_and_classifier(name, net, cut, pool=None, **options):
    head = [net.features[cut:]] + ([pool, nn.Flatten()] if pool else []) + [net.classifier]
    tail = [] if pool else [nn.Flatten()]
    return Case(name, net.features[:cut], nn.Sequential(*head, *tail), (2, 3, 64, 64), **options)


def densenet():
    net = torchvision.models.densenet121()
    parts = list(net.features.children())
    return Case("densenet121", nn.Sequential(*parts[:-2]),
                nn.Sequential(*parts[-2:], nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                              net.classifier), (2, 3, 64, 64))


def fcn():
    net = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None,
                                                       num_classes=20)
    upsample = Apply(lambda v: F.interpolate(v, size=(64, 64), mode="bilinear",
                                             align_corners=False))
    return Case("fcn_resnet50", nn.Sequential(*net.backbone.values()),
                nn.Sequential(net.classifier, upsample), (1, 3, 64, 64))


def vit(name, opset):
    return Case(name, nn.Sequential(Patches(64), Block(64, 4)),
                nn.Sequential(Block(64, 4), nn.LayerNorm(64), Apply(lambda x: x[:, 0]),
                              nn.Linear(64, 10)), (3, 3, 32, 32), opset=opset)


def unet():
    net = Unet()
    return Case("unet", net, nn.Identity(), (2, 3, 24, 20), separates=False,
                dynamic={0: "batch", 2: "height", 3: "width"})


def whole_networks():
    """Makers of the networks, largest first."""
    models = torchvision.models
    return [
        fcn,
        lambda: resnet("resnext50", models.resnext50_32x4d, fold_batch_norm=True),
        lambda: resnet("resnet50", models.resnet50),
        vgg16,
        lambda: resnet("resnet18", models.resnet18, opset=9),
        densenet,
        lambda: features_and_classifier("efficientnet_b0", models.efficientnet_b0(), 6,
                                        nn.AdaptiveAvgPool2d(1)),
        lambda: features_and_classifier("mobilenet_v2", models.mobilenet_v2(), 14,
                                        nn.AdaptiveAvgPool2d(1), opset=10),
        lambda: features_and_classifier("mobilenet_v3", models.mobilenet_v3_small(), 9,
                                        nn.AdaptiveAvgPool2d(1), opset=14),
        shufflenet,
        lambda: features_and_classifier("squeezenet", models.squeezenet1_1(), 9),
        lambda: vit("vit_decomposed", 13),
        lambda: vit("vit", 17),
        unet,
        mlp,
    ]


def single_layers():
    """Makers of networks whose head is one layer: every layer's value and gradient on its own."""
    vectors = {
        "relu": nn.ReLU(), "leaky_relu": nn.LeakyReLU(0.1), "prelu": nn.PReLU(12), "elu": nn.ELU(),
        "selu": nn.SELU(), "celu": nn.CELU(0.7), "sigmoid": nn.Sigmoid(), "tanh": nn.Tanh(),
        "hard_sigmoid": nn.Hardsigmoid(), "hard_swish": nn.Hardswish(), "silu": nn.SiLU(),
        "softplus": nn.Softplus(), "gelu": nn.GELU(), "hardtanh": nn.Hardtanh(-0.5, 0.7),
        "relu6": nn.ReLU6(), "mish": nn.Mish(), "softmax": nn.Softmax(1),
        "log_softmax": nn.LogSoftmax(1), "layer_norm": nn.LayerNorm(12),
        "exp": Apply(torch.exp), "abs": Apply(torch.abs), "square": Apply(lambda v: v ** 2),
        "log_of_exp": Apply(lambda v: torch.log(1 + torch.exp(v))),
        "rsqrt": Apply(lambda v: torch.rsqrt(v * v + 1)),
        "norm": Apply(lambda v: v / v.norm(dim=1, keepdim=True)),
        "maximum": Apply(lambda v: torch.maximum(v[:, :6], v[:, 6:])),
        "minimum": Apply(lambda v: torch.minimum(v[:, :6], -v[:, 6:])),
        "where": Apply(lambda v: torch.where(v > 0.2, v * 2, v - 1)),
        "slices": Apply(lambda v: torch.cat([v[:, :4], v[:, 2:9:3], v.flip(1)[:, :2]], 1)),
        "gather": Apply(lambda v: v[:, torch.tensor([3, 3, 0, 11])]),
        "max_of_row": Apply(lambda v: v.amax(1)), "min_of_row": Apply(lambda v: v.amin(1)),
        "sum_of_row": Apply(lambda v: v.sum(1)), "chunk": Apply(lambda v: torch.chunk(v, 3, 1)[1]),
        "matmul": Apply(lambda v: v.reshape(-1, 3, 4) @ v.reshape(-1, 4, 3)),
        "repeat": Apply(lambda v: v.repeat(1, 2)),
    }
    images = {
        "conv_groups": nn.Conv2d(12, 8, 3, padding=2, dilation=2, groups=4),
        "conv_strided": nn.Conv2d(12, 5, (3, 2), stride=(2, 1), padding=(1, 0)),
        "conv_transpose": nn.ConvTranspose2d(12, 4, 3, stride=2, padding=1, output_padding=1),
        "batch_norm": nn.BatchNorm2d(12), "instance_norm": nn.InstanceNorm2d(12, affine=True),
        "group_norm": nn.GroupNorm(3, 12), "pixel_shuffle": nn.PixelShuffle(2),
        "max_pool": nn.MaxPool2d(3, 2, 1), "max_pool_ceil": nn.MaxPool2d(3, 2, ceil_mode=True),
        "average_pool": nn.AvgPool2d(3, 2, 1),
        "average_pool_inner": nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        "global_max": nn.AdaptiveMaxPool2d(1), "pad_reflect": nn.ReflectionPad2d((1, 2, 3, 0)),
        "pad_replicate": nn.ReplicationPad2d(2),
        "pad_constant": nn.ConstantPad2d((1, -1, 0, 2), 0.5),
        "upsample_nearest": nn.Upsample(scale_factor=2),
        "upsample_bilinear": nn.Upsample(size=(11, 9), mode="bilinear"),
        "upsample_corners": nn.Upsample(scale_factor=3, mode="bilinear", align_corners=True),
    }
    makers = []
    for name, layer in vectors.items():
        makers.append(lambda name=name, layer=layer: Case(
            "layer_" + name, nn.Linear(5, 12), nn.Sequential(layer), (4, 5)))
    for name, layer in images.items():
        makers.append(lambda name=name, layer=layer: Case(
            "layer_" + name, nn.Conv2d(3, 12, 1), nn.Sequential(layer), (2, 3, 8, 7)))
    makers.append(lambda: Case("layer_conv1d", nn.Conv1d(3, 4, 1), nn.Sequential(
        nn.Conv1d(4, 6, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2)), (2, 3, 10)))
    makers.append(lambda: Case("layer_conv3d", nn.Conv3d(2, 4, 1), nn.Sequential(
        nn.Conv3d(4, 6, 3, padding=1), nn.ReLU(), nn.AvgPool3d(2)), (2, 2, 6, 6, 6)))
    return makers
