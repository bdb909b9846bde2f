"""`qualms.score(estimator, X, y)`, and names of classes wherever they are shown."""

import csv

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

import qualms
from qualms.predictions import PredictionsError, build, facts, write
from qualms.report.site.telling_items import telling_items

X, NUMBERS = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[NUMBERS]
FIT, TEST = np.arange(0, 150, 2), np.arange(1, 150, 2)


@pytest.fixture(scope="module")
def classifier():
    made = make_pipeline(StandardScaler(), LogisticRegression())
    return made.fit(X[FIT], Y[FIT])


@pytest.fixture
def file(classifier, tmp_path):
    """A file whose targets are names."""
    arrays = {"target": Y[TEST], "probs": classifier.predict_proba(X[TEST])}
    return write(
        tmp_path / "iris.npz", arrays, header={"classes": list(classifier.classes_)}
    )


def test_a_classifier_is_scored_as_its_probabilities_are(classifier):
    results = qualms.score(classifier, X[TEST], Y[TEST], resamples=0)
    assert results.header.classes == ("setosa", "versicolor", "virginica")
    assert results.header.method == "Pipeline"
    arrays = {"target": NUMBERS[TEST], "probs": classifier.predict_proba(X[TEST])}
    again = qualms.score(arrays, resamples=0)
    assert results["accuracy"].value == again["accuracy"].value
    assert results["nll"].value == pytest.approx(again["nll"].value)
    assert results["accuracy"].value == classifier.score(X[TEST], Y[TEST])


def test_numbers_from_0_need_no_names():
    fitted = LogisticRegression(max_iter=500).fit(X[FIT], NUMBERS[FIT])
    assert qualms.score(fitted, X[TEST], NUMBERS[TEST]).header.classes == ()


def test_a_regressor_has_a_deviation_where_it_says_one():
    model = GaussianProcessRegressor(alpha=0.1).fit(X[FIT][:, :3], X[FIT][:, 3])
    results = qualms.score(model, X[TEST][:, :3], X[TEST][:, 3], resamples=0)
    assert results.task == "regression"
    error = model.predict(X[TEST][:, :3]) - X[TEST][:, 3]
    assert results["rmse"].value == pytest.approx(np.sqrt(np.mean(error**2)))
    assert np.isfinite(results["crps_gaussian"].value)


def test_what_cannot_be_scored_is_refused(classifier):
    with pytest.raises(
        PredictionsError, match=r"write qualms.score\(estimator, X, y\)"
    ):
        qualms.score(classifier)
    with pytest.raises(PredictionsError, match=r"was fitted on .*, row 0 is 'rose'"):
        qualms.score(classifier, X[:1], ["rose"])
    with pytest.raises(PredictionsError, match="classes without probabilities, and"):
        qualms.score(LinearSVC().fit(X[FIT], Y[FIT]), X[TEST], Y[TEST])
    numbers = np.unique(Y, return_inverse=True)[1]
    for model in (LinearSVC(), RidgeClassifier(), SVC()):
        with pytest.raises(PredictionsError, match="classes without probabilities"):
            qualms.score(model.fit(X[FIT], numbers[FIT]), X[TEST], numbers[TEST])
    for found in (KMeans(2, n_init=1), IsolationForest()):
        with pytest.raises(PredictionsError, match="finds clusters or outliers, and"):
            qualms.score(found.fit(X[FIT][:, :3]), X[TEST][:, :3], numbers[TEST])
    with pytest.raises(ValueError, match="X and y belong to an estimator"):
        qualms.score({"target": [0, 1], "prob": [0.2, 0.9]}, X, Y)


def test_names_stand_in_the_facts_and_on_pages(file):
    found = qualms.predictions.read(file)
    assert facts(found)[0].startswith("classes: 3 (items of each: setosa: 25, versi")
    lines = str(telling_items(found, lambda rows: [None] * len(rows)))
    assert "('target', 'virginica')" in lines
    assert "('predicted', 'versicolor (" in lines


def test_names_stand_in_the_list_of_items_to_refer(file, tmp_path):
    plan = qualms.refer(file, budget=0.2)
    path = plan.items.save(tmp_path / "items.csv")
    with path.open() as rows:
        assert {row["predicted"] for row in csv.DictReader(rows)} <= set(Y)
    few = build(
        {"probs": np.tile([0.2, 0.7, 0.1], (60, 1))}, header={"classes": list(set(Y))}
    )
    check = plan.apply(few).check
    assert any(name in check.departures[1].example for name in set(Y))
