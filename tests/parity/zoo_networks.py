"""Makers of networks for zoo.py: what people export from torchvision and timm.

`makers` maps a name, such as timm/swin_tiny:new, to (packages, task, maker): maker(path) writes the
file with random weights and returns its rows by input. zoo_language.py and zoo_tables.py add more.
"""

import numpy as np

from torch_export import export_onnx

ROWS = 60
EXPORTERS = ("old", "new")
LABELS, NUMBERS, BINARY = "labels", "numbers", "binary"

makers = {}


def network(name, packages, task):
    def add(maker):
        makers[name] = (packages.split(), task, maker)
        return maker

    return add


def random_rows(spec, rows=ROWS, seed=0):
    """Rows of each input: ("float", shape), or (largest + 1, shape) for whole numbers."""
    random = np.random.default_rng(seed)
    found = []
    for kind, shape in spec:
        if kind == "float":
            found.append(random.normal(size=(rows, *shape)).astype(np.float32))
        else:
            found.append(random.integers(kind, size=(rows, *shape)))
    return found


def settle(module, spec):
    """Gives batch normalisations the statistics of random rows.

    With those of an untrained network answers shrink from layer to layer until all rows have the
    same."""
    import torch

    norms = [m for m in module.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.momentum = None
    module.train()
    with torch.no_grad():
        module(*(torch.from_numpy(rows) for rows in random_rows(spec, rows=8, seed=2)))


def export_torch(module, names, spec, path, exporter):
    import torch

    settle(module, spec)
    module.eval()
    example = tuple(torch.from_numpy(rows) for rows in random_rows(spec, rows=2))
    export_onnx(module, example, names, path, exporter)
    large = max((shape[-1] for _, shape in spec if shape), default=0) >= 192
    return dict(zip(names, random_rows(spec, ROWS // 3 if large else ROWS)))


def add_torch(name, packages, task, make, spec, names=("x",), exporters=EXPORTERS):
    for exporter in exporters:
        def maker(path, exporter=exporter):
            import torch

            torch.manual_seed(0)
            return export_torch(make(), list(names), spec, path, exporter)

        network(f"{name}:{exporter}", "torch onnxscript " + packages, task)(maker)


def images(side):
    return [("float", (3, side, side))]


def add_torchvision(name, side=64, **options):
    def make():
        import torchvision

        return torchvision.models.get_model(name, weights=None, num_classes=10, **options)

    add_torch(f"torchvision/{name}", "torchvision", LABELS, make, images(side))


for vision in ("resnet18", "resnet50", "resnext50_32x4d", "densenet121",
               "squeezenet1_1", "mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5",
               "shufflenet_v2_x0_5", "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf",
               "convnext_tiny", "swin_t", "swin_v2_t"):  # fmt: skip
    add_torchvision(vision)
add_torchvision("googlenet", side=96, init_weights=False, aux_logits=False)
add_torchvision("inception_v3", side=96, init_weights=False, aux_logits=False)


def add_small_end(name, width):
    """As torchvision has it, but averaged over the whole image, for a file of a few megabytes."""
    def make():
        import torch
        import torchvision

        model = torchvision.models.get_model(name, weights=None)
        model.avgpool = torch.nn.AdaptiveAvgPool2d(1)
        model.classifier = torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.ReLU(),
                                               torch.nn.Dropout(), torch.nn.Linear(64, 10))
        return model

    add_torch(f"torchvision/{name}", "torchvision", LABELS, make, images(64))


add_small_end("alexnet", 256)
add_small_end("vgg11_bn", 512)


def vision_transformer():
    import torch
    import torchvision

    model = torchvision.models.VisionTransformer(image_size=64, patch_size=16, num_layers=3,
                                                 num_heads=4, hidden_dim=96, mlp_dim=192,
                                                 num_classes=10)
    torch.nn.init.normal_(model.heads.head.weight, std=0.1)  # starts at 0
    return model


add_torch("torchvision/vit", "torchvision", LABELS, vision_transformer, images(64))
add_torchvision("maxvit_t", side=224)


def add_timm(name, side=64, **options):
    def make():
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, exportable=True, **options)

    add_torch(f"timm/{name}", "timm torchvision", LABELS, make, images(side))


for vision in ("convnext_atto", "tf_efficientnet_b0", "nf_regnet_b0", "repvgg_a0", "ghostnet_050",
               "regnetx_002", "edgenext_xx_small", "poolformer_s12", "resnet18d", "hrnet_w18_small",
               "dla34", "res2net50_14w_8s", "seresnet18", "eca_resnet33ts", "fastvit_t8",
               "pvt_v2_b0", "regnety_002", "resnest14d", "ghostnetv2_100", "hgnetv2_b0",
               "inception_next_atto", "mambaout_femto", "efficientvit_b0", "mobilenetv4_conv_small",
               "mobileone_s0", "skresnet18", "cs3darknet_s", "ese_vovnet19b_dw", "lcnet_050",
               "visformer_tiny", "lambda_resnet26t", "botnet26t_256", "starnet_s1",
               "convnextv2_atto", "caformer_s18", "repvit_m0_9", "gernet_s"):
    add_timm(vision)
for vision in ("vit_tiny_patch16_224", "deit_tiny_patch16_224", "mixer_s32_224", "resmlp_12_224",
               "cait_xxs24_224", "xcit_nano_12_p16_224", "coat_lite_tiny", "gmlp_ti16_224",
               "beit_base_patch16_224", "crossvit_tiny_240", "twins_svt_small", "pit_ti_224",
               "convit_tiny", "vit_little_patch16_reg4_gap_256"):
    add_timm(vision, img_size=64)
add_timm("swin_tiny_patch4_window7_224", img_size=64)
add_timm("coatnet_nano_rw_224", img_size=64)
add_timm("maxvit_pico_rw_256", side=128, img_size=128)
add_timm("mobilevit_xxs", side=128)
add_timm("levit_128s", side=224)
