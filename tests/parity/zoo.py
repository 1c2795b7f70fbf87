#!/usr/bin/env python3
"""Networks that others wrote, against ONNX Runtime: python zoo.py PROGRAM [FILTER …].

Each network is made here with random weights in a small configuration, exported as people export it
(torch's old and new exporter, skl2onnx, onnxmltools), and then

  read     `fcp inspect` takes the file;
  forward  `fcp run` gives what ONNX Runtime gives, to 1e-4 of the largest answer (quantised ones,
           where a rounding that falls the other way is a whole step, are only shown);
  scores   a regressor calibrates with residual and nested, a classifier with lac and feature_margin;
           what has no hidden layer (trees, linear models) with residual or lac;
  export   `fcp export` run by ONNX Runtime gives the regions of `fcp predict`.

A network is known by a name such as timm/swin_tiny:new; FILTER is a part of it. Each is tried in a
process of its own, with limits on memory and time. What is not installed is left out and said so.
The exit code is 1 where a network fails in one of these, but for what REFUSED names; --list only
names them. --keep FOLDER leaves each network's files there and takes them from there the next time;
--json FILE adds one line per network, which zoo_table.py makes the table of docs/networks.md from.

Needs from PyPI: onnx, onnxruntime, numpy; and whatever of torch, torchvision, timm, transformers,
onnxscript, scikit-learn, skl2onnx, lightgbm, xgboost, onnxmltools is wanted.
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import warnings

import numpy as np

import zoo_modules
from torch_export import export_onnx

ROWS = 60
ALPHA = "0.2"
MEMORY = 8 << 30
SECONDS = 600
EXPORTERS = ("old", "new")
LABELS, NUMBERS, FORWARD = "labels", "numbers", "forward"

# Parts of names, and what fcp does not do for such networks: the score that is refused.
REFUSED = {
    "own/attentive_sequence": "nested",  # cut before its GRU, which has no bounds
    "own/deep_fm": "nested",  # a sum of parts that all read the inputs: no cut but the inputs
    "transformers/GPT2": "feature_margin",  # takes the last word that is not padding: every cut
    "transformers/Llama": "feature_margin",  # is passed by the input ids that say which it is
}

makers = {}  # name -> (packages, task, maker); maker(path) writes the file and returns the rows


def network(name, packages, task):
    def add(maker):
        makers[name] = (packages.split(), task, maker)
        return maker

    return add


# PyTorch.


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
               "pvt_v2_b0"):
    add_timm(vision)
for vision in ("vit_tiny_patch16_224", "deit_tiny_patch16_224", "mixer_s32_224", "resmlp_12_224",
               "cait_xxs24_224", "xcit_nano_12_p16_224", "coat_lite_tiny"):
    add_timm(vision, img_size=64)
add_timm("swin_tiny_patch4_window7_224", img_size=64)
add_timm("coatnet_nano_rw_224", img_size=64)
add_timm("maxvit_pico_rw_256", side=128, img_size=128)
add_timm("mobilevit_xxs", side=128)
add_timm("levit_128s", side=224)

TEXT = dict(vocab_size=60, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=64, max_position_embeddings=40, num_labels=3)


class LogitsOnly:
    """A HuggingFace classifier that answers a tensor."""

    @staticmethod
    def of(model):
        import torch

        class Wrapped(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, input_ids, attention_mask):
                return self.model(input_ids=input_ids, attention_mask=attention_mask).logits

        return Wrapped()


def add_text(kind, **options):
    def make():
        import transformers

        config = getattr(transformers, kind + "Config")(**options, attn_implementation="eager")
        model = getattr(transformers, kind + "ForSequenceClassification")(config)
        return LogitsOnly.of(model)

    spec = [(50, (12,)), (2, (12,))]
    add_torch(f"transformers/{kind}", "transformers", LABELS, make, spec,
              names=("input_ids", "attention_mask"))


for text in ("Bert", "Roberta", "Electra", "Camembert", "XLMRoberta", "MPNet", "Deberta", "DebertaV2",
             "RoFormer", "Albert"):
    add_text(text, **TEXT, **({"embedding_size": 32} if text in ("Albert", "Electra") else {}))
add_text("DistilBert", vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=64,
         max_position_embeddings=40, num_labels=3)
add_text("GPT2", vocab_size=60, n_embd=32, n_layer=2, n_head=4, n_positions=40, num_labels=3,
         pad_token_id=0)
add_text("Llama", **TEXT, pad_token_id=0, num_key_value_heads=2)


def add_table(name, make, columns=8, task=NUMBERS):
    add_torch(f"tables/{name}", "", task, make, [("float", (columns,))])


def ft_transformer(columns=8, width=32):
    import torch

    class Tokens(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(columns, width))
            self.bias = torch.nn.Parameter(torch.randn(columns, width))
            self.first = torch.nn.Parameter(torch.randn(1, 1, width))
            layer = torch.nn.TransformerEncoderLayer(width, 4, 64, activation="gelu", dropout=0.0,
                                                     batch_first=True, norm_first=True)
            self.blocks = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = torch.nn.Sequential(torch.nn.LayerNorm(width), torch.nn.ReLU(),
                                            torch.nn.Linear(width, 1))

        def forward(self, x):
            tokens = x.unsqueeze(-1) * self.weight + self.bias
            first = self.first.expand(x.shape[0], -1, -1)
            return self.head(self.blocks(torch.cat([first, tokens], 1))[:, 0])

    return Tokens()


def recurrent(kind, **options):
    def make():
        import torch

        class Recurrent(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.cells = getattr(torch.nn, kind)(2, 16, batch_first=True, **options)
                self.head = torch.nn.Linear(16 * (2 if options.get("bidirectional") else 1), 1)

            def forward(self, x):
                return self.head(self.cells(x.reshape(-1, 4, 2))[0][:, -1])

        return Recurrent()

    return make


def perceptron(last):
    def make():
        import torch

        layers = [torch.nn.Linear(8, 32), torch.nn.BatchNorm1d(32), torch.nn.SiLU(),
                  torch.nn.Dropout(0.1), torch.nn.Linear(32, 32), torch.nn.GELU(),
                  torch.nn.Linear(32, last[0])]
        return torch.nn.Sequential(*layers, *(kind() for kind in last[1:]))

    return make


def tabnet():
    import torch

    class Steps(torch.nn.Module):
        """Attentive steps over the columns, with gated linear units, as TabNet has them."""

        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(8)
            self.masks = torch.nn.ModuleList([torch.nn.Linear(16, 8) for _ in range(3)])
            self.units = torch.nn.ModuleList([torch.nn.Linear(8, 64) for _ in range(3)])
            self.head = torch.nn.Linear(16, 1)

        def forward(self, x):
            x = self.norm(x)
            prior, state, total = torch.ones_like(x), x.repeat(1, 2), 0
            for mask, unit in zip(self.masks, self.units):
                share = torch.softmax(mask(state) * prior, -1)
                prior = prior * (1.3 - share)
                both = torch.nn.functional.glu(unit(share * x))
                state, total = both[:, :16], total + torch.relu(both[:, 16:])
            return self.head(total)

    return Steps()


def embeddings():
    import torch

    class Embedded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.kinds = torch.nn.Embedding(10, 4)
            self.layers = torch.nn.Sequential(torch.nn.Linear(11, 16), torch.nn.ReLU(),
                                              torch.nn.Linear(16, 1))

        def forward(self, kind, numbers):
            return self.layers(torch.cat([self.kinds(kind), numbers], 1))

    return Embedded()


add_table("perceptron", perceptron([1]))
add_table("softplus", perceptron([1, lambda: __import__("torch").nn.Softplus()]))
add_table("classifier", perceptron([4]), task=LABELS)
add_table("softmax", perceptron([4, lambda: __import__("torch").nn.Softmax(-1)]), task=LABELS)
add_table("sigmoid", perceptron([1, lambda: __import__("torch").nn.Sigmoid()]), task="binary")
add_table("logit", perceptron([1]), task="binary")
add_table("ft_transformer", ft_transformer)
add_table("tabnet", tabnet)
add_table("lstm", recurrent("LSTM"))
add_table("gru_both_ways", recurrent("GRU", bidirectional=True, num_layers=2))
add_table("rnn", recurrent("RNN"))
add_torch("tables/embeddings", "", NUMBERS, embeddings, [(10, ()), ("float", (7,))],
          names=("kind", "numbers"))
for own, (make_own, inputs, names_of_inputs, own_task) in zoo_modules.MODULES.items():
    add_torch(f"own/{own}", "", own_task, make_own, inputs, names=names_of_inputs)


def reduced(kind):
    """A perceptron in float16 or quantised, as tools of ONNX Runtime write it."""
    def maker(path):
        import onnx

        rows = makers["tables/classifier:old"][2](path)
        if kind == "float16":
            from onnxconverter_common import float16

            onnx.save(float16.convert_float_to_float16(onnx.load(path)), path)
            return {name: values.astype(np.float16) for name, values in rows.items()}
        from onnxruntime import quantization

        if kind == "dynamic":
            quantization.quantize_dynamic(path, path)
            return rows

        class Reader(quantization.CalibrationDataReader):
            def __init__(self):
                self.left = [{"x": rows["x"][i : i + 1]} for i in range(len(rows["x"]))]

            def get_next(self):
                return self.left.pop() if self.left else None

        quantization.quantize_static(path, path, Reader(),
                                     quant_format=quantization.QuantFormat.QDQ)
        return rows

    return maker


for form in ("float16", "dynamic", "qdq"):
    network(f"reduced/{form}", "torch onnxruntime onnxconverter_common", LABELS)(reduced(form))

# scikit-learn and boosting.

PIPELINES = {
    "linear": "linear_model.LinearRegression()",
    "ridge_scaled": "pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.Ridge())",
    "polynomial": "pipeline.make_pipeline(preprocessing.PolynomialFeatures(), linear_model.Ridge())",
    "minmax_mlp": "pipeline.make_pipeline(preprocessing.MinMaxScaler(), "
                  "neural_network.MLPRegressor(hidden_layer_sizes=(16, 16), max_iter=30))",
    "imputed_forest": "pipeline.make_pipeline(impute.SimpleImputer(), "
                      "ensemble.RandomForestRegressor(20))",
    "tree": "tree.DecisionTreeRegressor(max_depth=5)",
    "extra_trees": "ensemble.ExtraTreesRegressor(20)",
    "gradient_boosting": "ensemble.GradientBoostingRegressor(n_estimators=20)",
    "hist_boosting": "ensemble.HistGradientBoostingRegressor(max_iter=20)",
    "svr": "pipeline.make_pipeline(preprocessing.StandardScaler(), svm.SVR())",
    "neighbors": "neighbors.KNeighborsRegressor(3)",
    "bagging": "ensemble.BaggingRegressor(n_estimators=5)",
    "pca_ridge": "pipeline.make_pipeline(decomposition.PCA(4), linear_model.Ridge())",
    "gaussian_process": "gaussian_process.GaussianProcessRegressor()",
    "logistic": "linear_model.LogisticRegression()",
    "mlp_classifier": "neural_network.MLPClassifier((16,), max_iter=30)",
    "forest_classifier": "ensemble.RandomForestClassifier(20)",
    "boosting_classifier": "ensemble.GradientBoostingClassifier(n_estimators=10)",
    "hist_classifier": "ensemble.HistGradientBoostingClassifier(max_iter=10)",
    "naive_bayes": "naive_bayes.GaussianNB()",
    "svc": "svm.SVC(probability=True)",
    "neighbors_classifier": "neighbors.KNeighborsClassifier(3)",
    "discriminant": "discriminant_analysis.LinearDiscriminantAnalysis()",
}


def table_rows(task, seed=0, rows=300):
    random = np.random.default_rng(seed)
    x = random.normal(size=(rows, 6)).astype(np.float32)
    y = x[:, 0] + x[:, 1] * x[:, 2] + 0.3 * random.normal(size=rows)
    return x, (y if task == NUMBERS else np.digitize(y, [-0.5, 0.5]))


def add_sklearn(name, expression, task):
    @network(f"sklearn/{name}", "sklearn skl2onnx", task)
    def maker(path):
        import sklearn
        from skl2onnx import to_onnx

        modules = {}
        for module in {part.split(".")[0] for part in expression.replace("(", " ").split()
                       if "." in part and part[0].isalpha()}:
            modules[module] = importlib.import_module(f"sklearn.{module}")
        x, y = table_rows(task)
        model = eval(expression, modules).fit(x, y)
        options = {"zipmap": False} if task == LABELS else None
        file = to_onnx(model, x[:1], target_opset=17,
                       options={id(model): options} if options else None)
        with open(path, "wb") as out:
            out.write(file.SerializeToString())
        return {"X": x[-ROWS:]}


for pipeline, code in PIPELINES.items():
    labels = list(PIPELINES).index(pipeline) >= list(PIPELINES).index("logistic")
    add_sklearn(pipeline, code, LABELS if labels else NUMBERS)


def add_boosting(name, package, kind, task):
    @network(f"{package}/{name}", f"{package} onnxmltools skl2onnx", task)
    def maker(path):
        import onnxmltools
        from onnxmltools.convert.common.data_types import FloatTensorType

        x, y = table_rows(task)
        model = getattr(importlib.import_module(package), kind)(n_estimators=20).fit(x, y)
        convert = getattr(onnxmltools, f"convert_{package}")
        options = {"zipmap": False} if package == "lightgbm" and task == LABELS else {}
        file = convert(model, initial_types=[("X", FloatTensorType([None, 6]))], target_opset=15,
                       **options)
        with open(path, "wb") as out:
            out.write(file.SerializeToString())
        return {"X": x[-ROWS:]}


add_boosting("regressor", "lightgbm", "LGBMRegressor", NUMBERS)
add_boosting("classifier", "lightgbm", "LGBMClassifier", LABELS)
add_boosting("regressor", "xgboost", "XGBRegressor", NUMBERS)
add_boosting("classifier", "xgboost", "XGBClassifier", LABELS)

# Trying one.


class Trial:
    def __init__(self, program, folder, name):
        self.program, self.folder, self.name = program, folder, name
        _, self.task, self.maker = makers[name]
        self.found = {"name": name, "read": "", "forward": "", "scores": [], "export": "", "why": ""}

    def path(self, name):
        return os.path.join(self.folder, name)

    def fcp(self, *arguments):
        done = subprocess.run([self.program, *map(str, arguments), "--threads", "1", "--quiet"],
                              cwd=self.folder, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError((done.stderr.strip() or f"exit {done.returncode}").splitlines()[0])
        return done.stdout

    def session(self, file):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.log_severity_level = 3
        return onnxruntime.InferenceSession(self.path(file), options,
                                            providers=["CPUExecutionProvider"])

    def run(self):
        kept = self.path("made.npz")
        if os.path.exists(kept):
            self.rows = dict(np.load(kept))
        else:
            self.rows = self.maker(self.path("model.onnx"))
            np.savez(kept, **self.rows)
        if len(self.rows) > 1:
            self.data = "rows.npz"
            np.savez(self.path("rows.npz"), **self.rows)
        else:
            self.data = "rows.npy"
            np.save(self.path("rows.npy"), next(iter(self.rows.values())))
        try:
            self.fcp("inspect", "model.onnx")
            self.found["read"] = "yes"
            self.forward()
            if self.task != FORWARD:
                self.calibrate()
        except RuntimeError as error:
            self.found["why"] = str(error)[:300]
        return self.found

    def forward(self):
        session = self.session("model.onnx")
        self.inputs = {i.name: self.rows[i.name] for i in session.get_inputs()}
        outputs = session.run(None, self.inputs)
        names = [o.name for o in session.get_outputs()]
        place = max(range(len(names)), key=lambda i: np.asarray(outputs[i]).dtype.kind == "f")
        self.output, expected = names[place], np.asarray(outputs[place], np.float64)
        arguments = []
        for name in self.inputs:
            file = f"in{len(arguments)}.npy"
            np.save(self.path(file), self.rows[name])
            arguments += ["--data", f"{name}={file}"]
        out = [f"{self.output}=out.npy"] if len(names) > 1 else ["out.npy"]
        self.fcp("run", "model.onnx", *arguments, "--out", *out)
        found = np.load(self.path("out.npy")).reshape(expected.shape)
        self.answers = expected.reshape(len(expected), -1)
        distance = np.abs(found - expected).max() / max(1e-30, np.abs(expected).max())
        self.found["forward"] = f"{distance:.0e}"
        if not distance <= 1e-4 and not self.name.startswith("reduced/"):
            raise RuntimeError(f"forward differs by {distance:.1e} of the largest answer")

    def truths(self):
        random = np.random.default_rng(1)
        if self.task == NUMBERS:
            noise = 0.3 * random.normal(size=self.answers.shape)
            if (self.answers > 0).all():  # no truth where the network cannot answer
                return self.answers * np.exp(noise)
            return self.answers + noise * max(1e-6, self.answers.std())
        classes = 2 if self.task == "binary" else self.answers.shape[1]
        return random.integers(classes, size=len(self.answers))

    def calibrate(self):
        np.save(self.path("y.npy"), self.truths())
        flat = self.name.split("/")[0] in ("sklearn", "lightgbm", "xgboost")
        hidden = not flat or "mlp" in self.name
        labels = self.task != NUMBERS
        scores = ["lac", "feature_margin"] if labels else ["residual", "nested"]
        for score in scores if hidden else scores[:1]:
            try:
                self.regions(score, labels)
            except RuntimeError as error:
                if any(part in self.name and score == REFUSED[part] for part in REFUSED):
                    self.found["refused"] = f"{score}: {str(error)[:200]}"
                else:
                    self.found["why"] += f"{score}: {str(error)[:200]} "

    def regions(self, score, labels):
        self.fcp("calibrate", "model.onnx", "--data", self.data, "--target", "y.npy", "--score",
                 score, "--alpha", ALPHA, "--output", self.output, "--out", "calibrated.onnx")
        self.fcp("predict", "calibrated.onnx", "--data", self.data, "--alpha", ALPHA, "--out",
                 "regions.npy")
        self.found["scores"].append(score)
        try:
            self.fcp("export", "calibrated.onnx", "--alpha", ALPHA, "--out", "plain.onnx")
        except RuntimeError as error:
            self.found["export"] = f"{score}: refused"
            self.found["why"] += f"export: {str(error)[:200]} "
            return
        expected = np.load(self.path("regions.npy"))
        session = self.session("plain.onnx")
        wanted = ["in_set"] if labels else ["lower", "upper"]
        outputs = session.run(wanted, self.inputs)
        if labels:
            other = np.mean(outputs[0].reshape(expected.shape) != expected)
            same = other <= 0.002  # a label on the very edge may fall on the other side
        else:
            ends = np.stack([o.reshape(len(expected), -1) for o in outputs], -1)
            scale = np.abs(expected[np.isfinite(expected)]).max(initial=1e-6)
            same = np.allclose(ends, expected[:, :, 1:], rtol=0, atol=1e-3 * scale)
        self.found["export"] = self.found["export"] or "equal"
        if not same:
            self.found["export"] = f"{score}: differs"
            self.found["why"] += f"{score}: export differs from predict "


def one(program, name, keep):
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(prefix="fcp-zoo-") as folder:
        if keep:
            folder = os.path.join(keep, name.replace("/", "_").replace(":", "_"))
            os.makedirs(folder, exist_ok=True)
        try:
            found = Trial(program, folder, name).run()
        except Exception as error:  # of the exporter, which is no fault of fcp
            text = f"{type(error).__name__}: {str(error).strip().splitlines()[:1]}"
            found = {"name": name, "made": False, "why": text[:300]}
    print("\n" + json.dumps(found))


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))


def try_apart(program, name, keep):
    command = [sys.executable, os.path.abspath(__file__), program, "--one", name]
    command += ["--keep", keep] if keep else []
    environment = dict(os.environ, OMP_NUM_THREADS="1")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS,
                              preexec_fn=limit_memory, env=environment)
        return json.loads(done.stdout.strip().splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"name": name, "why": f"takes more than {SECONDS} s"}
    except (ValueError, IndexError):
        last = done.stderr.strip().splitlines()[-1:] or [f"exit {done.returncode}"]
        return {"name": name, "why": last[0][:300]}


def is_good(found):
    return bool(found.get("read")) and bool(found.get("scores")) and not found.get("why")


def main():
    parser = argparse.ArgumentParser(description="Networks that others wrote, against ONNX Runtime")
    parser.add_argument("program", help="the program fcp")
    parser.add_argument("filters", nargs="*", help="parts of names; none: all networks")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--keep", help="a folder for the files made, which are used again")
    parser.add_argument("--json", help="a file that gets one line per network")
    parser.add_argument("--list", action="store_true", help="only name the networks")
    arguments = parser.parse_args()
    program = os.path.abspath(arguments.program)
    if arguments.one:
        return one(program, arguments.one, arguments.keep)
    names = [name for name in makers
             if not arguments.filters or any(part in name for part in arguments.filters)]
    if arguments.list:
        return print("\n".join(names))
    counts = {"good": 0, "bad": 0, "not made": 0, "not installed": 0}
    for name in names:
        missing = [p for p in makers[name][0] if importlib.util.find_spec(p) is None]
        if missing:
            counts["not installed"] += 1
            print(f"{name:44} left out: {', '.join(missing)} is not installed", flush=True)
            continue
        found = try_apart(program, name, arguments.keep)
        if arguments.json:
            with open(arguments.json, "a") as file:
                file.write(json.dumps(found) + "\n")
        kind = "not made" if found.get("made") is False else "good" if is_good(found) else "bad"
        counts[kind] += 1
        scores = ",".join(found.get("scores", []))
        print(f"{name:44} {kind:8} read {found.get('read') or '-':3} forward "
              f"{found.get('forward') or '-':5} {scores or '-':22} export "
              f"{found.get('export') or '-':10} {found['why']}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 1 if counts["bad"] else 0


if __name__ == "__main__":
    sys.exit(main())
