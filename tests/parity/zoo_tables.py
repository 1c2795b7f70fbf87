"""Networks and models of tables for zoo.py: perceptrons, scikit-learn, boosting, and other forms."""

import importlib
import re

import numpy as np

import zoo_designs
import zoo_modules
from zoo_networks import BINARY, LABELS, NUMBERS, ROWS, add_torch, makers, network


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
add_table("sigmoid", perceptron([1, lambda: __import__("torch").nn.Sigmoid()]), task=BINARY)
add_table("logit", perceptron([1]), task=BINARY)
add_table("ft_transformer", ft_transformer)
add_table("tabnet", tabnet)
add_table("lstm", recurrent("LSTM"))
add_table("gru_both_ways", recurrent("GRU", bidirectional=True, num_layers=2))
add_table("rnn", recurrent("RNN"))
add_torch("tables/embeddings", "", NUMBERS, embeddings, [(10, ()), ("float", (7,))],
          names=("kind", "numbers"))
own_modules = {**zoo_modules.MODULES, **zoo_designs.MODULES}
for own, (make_own, inputs, names_of_inputs, own_task) in own_modules.items():
    add_torch(f"own/{own}", "", own_task, make_own, inputs, names=names_of_inputs)


def reduced(kind):
    """A network in float16 or quantised, as tools of ONNX Runtime write it.

    Weights have 7 bits: with 8, ONNX Runtime's sums overflow on processors without VNNI."""
    def maker(path):
        import onnx

        small = kind in ("float16", "dynamic", "qdq")
        rows = makers["tables/classifier:old" if small else "own/small_images:old"][2](path)
        if kind == "float16":
            from onnxconverter_common import float16

            onnx.save(float16.convert_float_to_float16(onnx.load(path)), path)
            return {name: values.astype(np.float16) for name, values in rows.items()}
        from onnxruntime import quantization

        if kind.startswith("dynamic"):
            quantization.quantize_dynamic(path, path, reduce_range=True)
            return rows

        class Reader(quantization.CalibrationDataReader):
            def __init__(self):
                self.left = [{"x": rows["x"][i : i + 1]} for i in range(len(rows["x"]))]

            def get_next(self):
                return self.left.pop() if self.left else None

        form = quantization.QuantFormat.QDQ if kind == "qdq" else quantization.QuantFormat.QOperator
        quantization.quantize_static(path, path, Reader(), quant_format=form, reduce_range=True)
        return rows

    return maker


for form in ("float16", "dynamic", "qdq", "qoperator", "dynamic_images"):
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
    "gaussian_process_matern": "gaussian_process.GaussianProcessRegressor("
                               "gaussian_process.kernels.Matern(nu=1.5))",
    "neighbors_weighted": "neighbors.KNeighborsRegressor(5, weights='distance')",
    "stacking": "ensemble.StackingRegressor([('a', linear_model.Ridge()), "
                "('b', tree.DecisionTreeRegressor(max_depth=3))])",
    "voting": "ensemble.VotingRegressor([('a', linear_model.Ridge()), "
              "('b', tree.DecisionTreeRegressor(max_depth=3))])",
    "adaboost": "ensemble.AdaBoostRegressor(n_estimators=5)",
    "lasso": "linear_model.Lasso(0.01)",
    "huber": "linear_model.HuberRegressor()",
    "quantile": "linear_model.QuantileRegressor(quantile=0.8)",
    "kernel_svr": "svm.NuSVR(kernel='poly')",
    "partial_least_squares": "cross_decomposition.PLSRegression()",
    "quantile_transformer": "pipeline.make_pipeline(preprocessing.QuantileTransformer("
                            "n_quantiles=50), linear_model.Ridge())",
    "power_transformer": "pipeline.make_pipeline(preprocessing.PowerTransformer(), "
                         "linear_model.Ridge())",
    "bins": "pipeline.make_pipeline(preprocessing.KBinsDiscretizer(4, encode='onehot-dense'), "
            "linear_model.Ridge())",
    "union": "pipeline.make_pipeline(pipeline.make_union(decomposition.PCA(2), "
             "preprocessing.RobustScaler()), linear_model.Ridge())",
    "kernel_pca": "pipeline.make_pipeline(decomposition.KernelPCA(3, kernel='rbf'), "
                  "linear_model.Ridge())",
    "clusters": "pipeline.make_pipeline(cluster.KMeans(4), linear_model.Ridge())",
    "imputed_neighbors": "pipeline.make_pipeline(impute.KNNImputer(), linear_model.Ridge())",
    "columns": "pipeline.make_pipeline(compose.ColumnTransformer(["
               "('a', preprocessing.StandardScaler(), [0, 1]), "
               "('b', preprocessing.MinMaxScaler(), [2, 3])], remainder='passthrough'), "
               "ensemble.RandomForestRegressor(5))",
    "selected": "pipeline.make_pipeline(feature_selection.SelectKBest("
                "feature_selection.f_regression, k=3), linear_model.Ridge())",
    "grid": "model_selection.GridSearchCV(linear_model.Ridge(), {'alpha': [0.1, 1.0]})",
    "logistic": "linear_model.LogisticRegression()",
    "gaussian_process_classifier": "gaussian_process.GaussianProcessClassifier()",
    "bernoulli": "naive_bayes.BernoulliNB()",
    "stacking_classifier": "ensemble.StackingClassifier([('a', linear_model.LogisticRegression()), "
                           "('b', tree.DecisionTreeClassifier(max_depth=3))])",
    "voting_classifier": "ensemble.VotingClassifier([('a', linear_model.LogisticRegression()), "
                         "('b', tree.DecisionTreeClassifier(max_depth=3))], voting='soft')",
    "calibrated": "calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2)",
    "adaboost_classifier": "ensemble.AdaBoostClassifier(n_estimators=5)",
    "bagging_classifier": "ensemble.BaggingClassifier(n_estimators=5)",
    "quadratic_discriminant": "discriminant_analysis.QuadraticDiscriminantAnalysis()",
    "one_against_rest": "multiclass.OneVsRestClassifier(linear_model.LogisticRegression())",
    "gradient_descent": "linear_model.SGDClassifier(loss='log_loss')",
    "svc_linear": "svm.SVC(kernel='linear', probability=True)",
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

        names = set(re.findall(r"\b([a-z_]+)\.", expression)) - {"kernels"}
        modules = {name: importlib.import_module(f"sklearn.{name}") for name in names}
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


def add_catboost(name, kind, task, **options):
    """By CatBoost's own writer of ONNX files."""

    @network(f"catboost/{name}", "catboost", task)
    def maker(path):
        import catboost

        x, y = table_rows(task)
        model = getattr(catboost, kind)(iterations=20, verbose=False, allow_writing_files=False,
                                        **options)
        model.fit(x, y).save_model(path, format="onnx")
        return {"features": x[-ROWS:]}


add_catboost("regressor", "CatBoostRegressor", NUMBERS)
add_catboost("quantile", "CatBoostRegressor", NUMBERS, loss_function="Quantile:alpha=0.9")
add_catboost("classifier", "CatBoostClassifier", LABELS)


def add_keras(name, task, shape, make):
    """A model of Keras by tf2onnx: images with channels last, and Keras' own names."""

    @network(f"keras/{name}", "tensorflow tf2onnx", task)
    def maker(path):
        import tensorflow
        import tf2onnx

        tensorflow.keras.utils.set_random_seed(0)
        inputs = tensorflow.keras.Input(shape)
        model = tensorflow.keras.Model(inputs, make(tensorflow.keras.layers, inputs))
        spec = [tensorflow.TensorSpec((None, *shape), tensorflow.float32, name="x")]
        tf2onnx.convert.from_keras(model, spec, opset=17, output_path=path)
        return {"x": np.random.default_rng(0).normal(size=(ROWS, *shape)).astype(np.float32)}


def keras_images(layers, x):
    for width in (8, 16):
        x = layers.Conv2D(width, 3, padding="same", strides=2)(x)
        x = layers.BatchNormalization()(x)
        x = layers.Activation("swish")(x)
    x = layers.SeparableConv2D(16, 3, activation="relu")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return layers.Dense(4, activation="softmax")(layers.Dense(16, activation="relu")(x))


def keras_table(layers, x):
    x = layers.Normalization(mean=0.1, variance=2.0)(x)
    x = layers.Dense(16, activation="relu")(x)
    return layers.Dense(1)(layers.Dropout(0.2)(layers.LayerNormalization()(x)))


def keras_series(layers, x):
    return layers.Dense(2)(layers.Bidirectional(layers.LSTM(8))(x))


def keras_attention(layers, x):
    x = layers.Dense(16)(x)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x))
    return layers.Dense(3)(layers.Flatten()(layers.Dense(8, activation="elu")(x)))


add_keras("images", LABELS, (32, 32, 3), keras_images)
add_keras("table", NUMBERS, (8,), keras_table)
add_keras("series", NUMBERS, (12, 3), keras_series)
add_keras("attention", LABELS, (6, 5), keras_attention)
