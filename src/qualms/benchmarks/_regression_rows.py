"""The rows of the regression benchmark: the paper's ten, its variations, and ours."""

from qualms.benchmarks._benchmark import TableRow
from qualms.spec import Part

_MAP, _GAUSSIAN = Part(name="map"), Part(name="gaussian")

PAPER_ROWS = (
    TableRow(name="conformal", label="Conformal Prediction", method=_MAP, rule="point"),
    TableRow(name="ensemble", label="Ensemble", method=_MAP, pool=5, rule="gaussian"),
    TableRow(name="gaussian", label="Gaussian", method=_GAUSSIAN, rule="gaussian"),
    TableRow(
        name="gaussian_ensemble",
        label="Gaussian Ensemble",
        method=_GAUSSIAN,
        pool=5,
        rule="gaussian",
    ),
    TableRow(
        name="quantile",
        label="Quantile Regression",
        method=Part(name="quantile"),
        rule="quantile",
        per_alpha=True,
    ),
    *(
        TableRow(
            name=f"gaussian_{name}",
            label=f"Gaussian + Selective {label}",
            method=_GAUSSIAN,
            rule="gaussian",
            select=select,
        )
        for name, label, select in (
            ("gmm", "GMM", "gmm4"),
            ("knn", "kNN", "knn10"),
            ("variance", "Variance", "variance"),
        )
    ),
    *(
        TableRow(
            name=f"gaussian_ensemble_{name}",
            label=f"Gaussian Ensemble + Selective {label}",
            method=_GAUSSIAN,
            pool=5,
            rule="gaussian",
            select=select,
        )
        for name, label, select in (
            ("gmm", "GMM", "gmm4"),
            ("variance", "Ens Var", "ensemble_variance"),
        )
    ),
)

VARIATIONS = (
    *(
        TableRow(
            name=f"gaussian_{select}",
            label=f"Gaussian + Selective {label}",
            method=_GAUSSIAN,
            rule="gaussian",
            select=select,
        )
        for select, label in (
            ("gmm2", "GMM, k=2"),
            ("gmm8", "GMM, k=8"),
            ("knn5", "kNN, k=5"),
            ("knn20", "kNN, k=20"),
            ("knn10_l2", "kNN, L2"),
        )
    ),
    TableRow(
        name="gaussian_gmm_spectral",
        label="Gaussian + Selective GMM, Spectral Norm",
        method=_GAUSSIAN,
        network={"spectral": 3.0},
        rule="gaussian",
        select="gmm4",
    ),
)

BEYOND = (
    TableRow(
        name="gaussian_weighted",
        label="Gaussian, weighted calibration",
        method=_GAUSSIAN,
        rule="gaussian",
        weighted=True,
        beyond=True,
    ),
    TableRow(
        name="mc_dropout",
        label="MC Dropout",
        method=Part(name="mc_dropout"),
        rule="gaussian",
        beyond=True,
    ),
    TableRow(
        name="laplace",
        label="Last-layer Laplace",
        method=Part(name="laplace"),
        rule="gaussian",
        beyond=True,
    ),
)
