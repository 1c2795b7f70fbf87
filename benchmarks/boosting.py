"""Four pipelines that a careful user of gradient boosting would write in an afternoon, on one table:

    hgb split    scikit-learn's HistGradientBoosting with split conformal prediction
    hgb cqr      the same at the 5 % and 95 % quantiles, conformalized (CQR)
    lgb split    the mean of five cross-fitted LightGBM models with split conformal prediction
    lgb spread   the same with a spread learned from out-of-fold residuals

`run(frame, target, train, calibration, test, seed)` yields name, point predictions (None for CQR),
lower and upper ends of the test rows, and seconds by the clock and of all processors. Needs numpy,
pandas, scikit-learn and lightgbm.
"""

import time
import warnings

import numpy as np
import pandas as pd

ALPHA = 0.1
MOST_LEVELS = 250


def columns_of(frame):
    """Dates as days, weekday and month; texts as categories, rare ones pooled."""
    made = frame.copy()
    for name in frame.columns:
        column = frame[name]
        if column.dtype.kind in "fiub":
            continue
        dates = pd.to_datetime(column, errors="coerce", format="ISO8601")
        if dates.notna().mean() > 0.9:
            made[name] = (dates - pd.Timestamp("2000-01-01")).dt.total_seconds() / 86400
            made[name + " weekday"] = dates.dt.dayofweek.astype(float)
            made[name + " month"] = dates.dt.month.astype(float)
            continue
        texts = column.astype(object).where(column.notna(), "missing").astype(str)
        known = texts.value_counts().index[:MOST_LEVELS]
        made[name] = texts.where(texts.isin(known), "other").astype("category")
    return made


def radius(scores):
    rank = int(np.ceil((1 - ALPHA) * (len(scores) + 1) - 1e-9))
    return np.inf if rank > len(scores) else np.sort(scores)[rank - 1]


def clocks():
    return np.array([time.time(), time.process_time()])


def by_histograms(x, y, train, calibration, test, seed):
    from sklearn.ensemble import HistGradientBoostingRegressor

    def fitted(**more):
        model = HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=seed,
                                              **more)
        return model.fit(x.iloc[train], y[train])

    start = clocks()
    model = fitted()
    half = radius(np.abs(y[calibration] - model.predict(x.iloc[calibration])))
    center = model.predict(x.iloc[test])
    yield "hgb split", center, center - half, center + half, clocks() - start

    start = clocks()
    low, high = (fitted(loss="quantile", quantile=q) for q in (ALPHA / 2, 1 - ALPHA / 2))
    known = x.iloc[calibration]
    more = radius(np.maximum(low.predict(known) - y[calibration],
                             y[calibration] - high.predict(known)))
    lower, upper = low.predict(x.iloc[test]) - more, high.predict(x.iloc[test]) + more
    yield "hgb cqr", None, lower, np.maximum(lower, upper), clocks() - start


def by_cross_fitting(x, y, train, calibration, test, seed):
    import lightgbm

    start = clocks()
    fold = np.random.RandomState(seed).randint(0, 5, len(train))
    outside, models = np.zeros(len(train)), []
    for e in range(5):
        own, held = train[fold != e], train[fold == e]
        model = lightgbm.LGBMRegressor(
            n_estimators=2000, learning_rate=0.03, num_leaves=31, min_child_samples=10,
            subsample=0.8, subsample_freq=1, colsample_bytree=0.8, random_state=seed, n_jobs=2,
            verbosity=-1)
        model.fit(x.iloc[own], y[own], eval_set=[(x.iloc[held], y[held])],
                  callbacks=[lightgbm.early_stopping(60, verbose=False)])
        outside[fold == e] = model.predict(x.iloc[held])
        models.append(model)

    def center(rows):
        return np.mean([model.predict(x.iloc[rows]) for model in models], axis=0)

    known, found = center(calibration), center(test)
    half = radius(np.abs(y[calibration] - known))
    yield "lgb split", found, found - half, found + half, clocks() - start

    residuals = np.abs(y[train] - outside)
    model = lightgbm.LGBMRegressor(objective="l1", n_estimators=300, learning_rate=0.03,
                                   num_leaves=15, min_child_samples=30, n_jobs=2, verbosity=-1)
    model.fit(x.iloc[train].assign(center=outside), residuals)

    def spread(rows, centers):
        told = model.predict(x.iloc[rows].assign(center=centers))
        return np.maximum(told, 0) + 0.1 * residuals.mean()

    half = radius(np.abs(y[calibration] - known) / spread(calibration, known)) * spread(test, found)
    yield "lgb spread", found, found - half, found + half, clocks() - start


def run(frame, target, train, calibration, test, seed):
    warnings.filterwarnings("ignore")
    y = frame[target].to_numpy(float)
    x = columns_of(frame.drop(columns=target))
    for pipeline in (by_histograms, by_cross_fitting):
        yield from pipeline(x, y, train, calibration, test, seed)
