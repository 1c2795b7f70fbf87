#!/usr/bin/env python3
"""Writes models of scikit-learn, LightGBM and XGBoost as ONNX, with ONNX Runtime's answers.

    make_ml_cases.py FOLDER

Each case gets a folder with model.onnx, input_K.npy and output_K.npy; index.json names them, with the
tensors they stand for, as make_op_cases.py does. Outputs are those that are tensors of numbers;
dictionaries of probabilities stand as a matrix. Exit code 77: a Python package is missing.
"""

import json
import pathlib
import sys
import warnings

try:
    import numpy as np
    import onnxruntime
    import skl2onnx
    import sklearn
    from sklearn import (compose, ensemble, impute, linear_model, naive_bayes, neighbors,
                         neural_network, pipeline, preprocessing, svm, tree)
except ImportError as missing:
    print(f"skipped: {missing}; the cases need skl2onnx, scikit-learn and onnxruntime")
    sys.exit(77)

import references

HERE = pathlib.Path(__file__).resolve().parent


def regressors():
    scale = preprocessing.StandardScaler
    yield "linear", linear_model.LinearRegression()
    yield "ridge_scaled", pipeline.make_pipeline(scale(), linear_model.Ridge())
    yield "lasso_poly", pipeline.make_pipeline(preprocessing.PolynomialFeatures(2),
                                               linear_model.Lasso(0.01))
    yield "tree", tree.DecisionTreeRegressor(max_depth=6, random_state=0)
    yield "forest", ensemble.RandomForestRegressor(30, random_state=0)
    yield "extra_trees", ensemble.ExtraTreesRegressor(30, random_state=0)
    yield "gradient_boosting", ensemble.GradientBoostingRegressor(random_state=0)
    yield "hist_boosting", ensemble.HistGradientBoostingRegressor(random_state=0)
    yield "svr", pipeline.make_pipeline(preprocessing.MinMaxScaler(), svm.SVR())
    yield "svr_poly", svm.SVR(kernel="poly")
    yield "neighbors", neighbors.KNeighborsRegressor(3)
    network = {"hidden_layer_sizes": (20,), "max_iter": 300, "random_state": 0}
    yield "mlp", pipeline.make_pipeline(scale(), neural_network.MLPRegressor(**network))
    yield "imputed", pipeline.make_pipeline(impute.SimpleImputer(), scale(),
                                            linear_model.BayesianRidge())
    yield "columns", pipeline.make_pipeline(
        compose.ColumnTransformer([("a", preprocessing.Normalizer(), [0, 1]),
                                   ("b", preprocessing.Binarizer(threshold=0.1), [2, 3])],
                                  remainder="passthrough"),
        linear_model.LinearRegression())


def classifiers():
    yield "logistic", linear_model.LogisticRegression()
    yield "tree_classes", tree.DecisionTreeClassifier(max_depth=5, random_state=0)
    yield "forest_classes", ensemble.RandomForestClassifier(30, random_state=0)
    yield "boosted_classes", ensemble.GradientBoostingClassifier(n_estimators=20, random_state=0)
    yield "hist_classes", ensemble.HistGradientBoostingClassifier(max_iter=20, random_state=0)
    yield "mlp_classes", neural_network.MLPClassifier(hidden_layer_sizes=(20,), max_iter=300,
                                                      random_state=0)
    yield "naive_bayes", naive_bayes.GaussianNB()
    yield "svc", svm.SVC(probability=True, random_state=0)
    yield "svc_poly", svm.SVC(kernel="poly", decision_function_shape="ovo")
    yield "neighbors_classes", neighbors.KNeighborsClassifier(5)


def foreign_models(x, y, labels):
    """LightGBM and XGBoost, through onnxmltools, where they are there."""
    try:
        import lightgbm
        import xgboost
        from onnxmltools import convert_lightgbm, convert_xgboost
        from onnxmltools.convert.common.data_types import FloatTensorType as Floats
    except ImportError as missing:
        print(f"left out: {missing}")
        return
    types = [("x", Floats([None, x.shape[1]]))]
    quiet = {"verbosity": -1, "n_jobs": 1, "random_state": 0}
    for name, model, target in (
            ("lightgbm", lightgbm.LGBMRegressor(n_estimators=40, **quiet), y),
            ("lightgbm_two", lightgbm.LGBMClassifier(n_estimators=20, **quiet), labels > 0),
            ("lightgbm_three", lightgbm.LGBMClassifier(n_estimators=20, **quiet), labels)):
        model.fit(x, target.astype(int) if name != "lightgbm" else target)
        yield name, convert_lightgbm(model, initial_types=types, target_opset=15)
    for name, model, target in (
            ("xgboost", xgboost.XGBRegressor(n_estimators=40, n_jobs=1), y),
            ("xgboost_two", xgboost.XGBClassifier(n_estimators=20, n_jobs=1), labels > 0),
            ("xgboost_three", xgboost.XGBClassifier(n_estimators=20, n_jobs=1), labels)):
        model.fit(x, target.astype(int) if name != "xgboost" else target)
        yield name, convert_xgboost(model, initial_types=types, target_opset=15)


def exported(name, model, x):
    """Nothing where this version of skl2onnx does not know this version of the model."""
    try:
        yield name, skl2onnx.to_onnx(model, x[:1], target_opset=17)
    except Exception as problem:  # its converters raise whatever goes wrong in them
        print(f"left out: {name} ({type(problem).__name__} in skl2onnx)")


def models(x, y, labels):
    for name, model in regressors():
        yield from exported(name, model.fit(x, y), x)
    for name, model in classifiers():
        for kind, target in (("two", (labels > 0).astype(int)), ("three", labels)):
            yield from exported(f"{name}_{kind}", model.fit(x, target), x)
    named = linear_model.LogisticRegression().fit(x, np.array(["a", "b", "c"])[labels])
    yield "named_classes", skl2onnx.to_onnx(named, x[:1], target_opset=17)
    yield from foreign_models(x, y, labels)


def answers(model, x):
    """(name, array) of the outputs that are tensors of numbers, or dictionaries of them."""
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    rows = x.astype(np.float64) if "double" in given.type else x
    results = session.run(None, {given.name: rows})
    kept = []
    for output, result in zip(session.get_outputs(), results):
        if isinstance(result, list):
            result = np.array([list(row.values()) for row in result], np.float32)
        if result.dtype != object:
            kept.append((output.name, result))
    return given.name, rows, kept


def write_all(folder):
    warnings.filterwarnings("ignore")
    random = np.random.RandomState(0)
    x = random.randn(300, 6).astype(np.float32)
    y = x[:, 0] * 2 + np.sin(3 * x[:, 1]) + x[:, 2] * x[:, 3] + 0.1 * random.randn(300)
    labels = np.digitize(y, [-1, 1])
    tested = random.randn(101, 6).astype(np.float32)
    index = []
    for name, model in models(x, y, labels):
        given, rows, outputs = answers(model, tested)
        (folder / name).mkdir()
        (folder / name / "model.onnx").write_bytes(model.SerializeToString())
        np.save(folder / name / "input_0.npy", rows)
        for k, (_, array) in enumerate(outputs):
            np.save(folder / name / f"output_{k}.npy", array)
        index.append({"name": name, "inputs": [given], "outputs": [n for n, _ in outputs]})
    (folder / "index.json").write_text(json.dumps(index, indent=1))
    print(f"{len(index)} cases")


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: make_ml_cases.py FOLDER")
    versions = onnxruntime.__version__ + sklearn.__version__ + skl2onnx.__version__
    references.make_once(pathlib.Path(sys.argv[1]), [HERE / "make_ml_cases.py"], versions, write_all)


if __name__ == "__main__":
    main()
