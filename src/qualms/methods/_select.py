"""Scores that say which items to leave out, from the features of the training split.

`gmm<k>` is minus the log-density of a Gaussian mixture of k components, `knn<k>` the
mean angular distance to the k nearest training features and `knn<k>_l2` the Euclidean
one (Gustafsson et al., 2023). Both are larger for items unlike the training split.

The mixture is fitted with the algorithm and the constants of scikit-learn's
GaussianMixture, from the same k-means start, so that both give the same mixture; but a
step over 10,000 features of 512 dimensions takes milliseconds on an accelerator and
seconds on its host. Neighbours are exact, the same as those of
`qualms.scores.mean_neighbour_distance`. Both are computed on the device in float64.
"""

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from qualms.methods._headed import FittedBuffers

_NAME = re.compile(r"(gmm|knn)([1-9]\d*)(_l2)?")
_TOLERANCE = 1e-3
_STEPS = 100
_BLOCK = 256
_RIDGE = 1e-6
"""Added to the variance of every feature within a component."""


class Mixture(NamedTuple):
    """K Gaussians of D dimensions, in float64."""

    logs: Tensor
    """(K,) logarithms of the shares."""
    means: Tensor
    """(K, D)."""
    scales: Tensor
    """(K, D, D) upper triangular; a centred feature times it has unit covariance."""


class _SelectScore(NamedTuple):
    name: str
    kind: str
    """gmm, knn or knn_l2."""
    size: int
    """Components or neighbours."""


def pooling_rules(names: Iterable[str]) -> dict[str, str]:
    """Return how each score is pooled over runs: by mean density or mean distance."""
    return {
        score.name: "logmeanexp" if score.kind == "gmm" else "mean"
        for score in map(_parsed, names)
    }


class SelectionScores(nn.Module):
    """Selection scores that are fitted on training features."""

    def __init__(self, names: Sequence[str], *, ridge: float = _RIDGE) -> None:
        super().__init__()
        self.ridge = ridge
        self.scores = tuple(map(_parsed, names))
        mixtures = {
            s.name: FittedBuffers(Mixture._fields)
            for s in self.scores
            if s.kind == "gmm"
        }
        self.mixtures = nn.ModuleDict(mixtures)
        self.neighbours = FittedBuffers(("features",))

    def fit(self, features: Iterable[Tensor]) -> None:
        """Fit every score to the features (B, D) of the training split, in order."""
        if not self.scores:
            return
        values = torch.cat(list(features))
        for score in self.scores:
            if score.kind == "gmm":
                mixture = fit_mixture(values, score.size, ridge=self.ridge)
                self._keep_mixture(score.name, mixture)
            elif score.size > len(values):
                raise ValueError(
                    f"select '{score.name}' needs at least {score.size} training "
                    f"items, got {len(values)}"
                )
            else:
                self.neighbours.keep("features", values.float())

    def forward(self, features: Tensor) -> dict[str, Tensor]:
        """Return select/<name> (1, B) of features (B, D); nothing before `fit`."""
        if not all(store.ready for store in self._stores()):
            return {}
        values = {
            score.name: -log_density(features, self._mixture(score.name))
            for score in self.scores
            if score.kind == "gmm"
        }
        for kind in ("knn", "knn_l2"):
            values |= self._distances(features, kind)
        return {
            f"select/{score.name}": values[score.name][None] for score in self.scores
        }

    def _distances(self, features: Tensor, kind: str) -> dict[str, Tensor]:
        scores = [score for score in self.scores if score.kind == kind]
        if not scores:
            return {}
        distances = neighbour_distances(
            features,
            self.neighbours.get("features"),
            [score.size for score in scores],
            angular=kind == "knn",
        )
        return {s.name: values for s, values in zip(scores, distances, strict=True)}

    def _keep_mixture(self, name: str, mixture: Mixture) -> None:
        for part, values in zip(Mixture._fields, mixture, strict=True):
            self._store(name).keep(part, values)

    def _mixture(self, name: str) -> Mixture:
        return Mixture(*(self._store(name).get(part) for part in Mixture._fields))

    def _stores(self) -> list[FittedBuffers]:
        kinds = {score.kind for score in self.scores}
        stores = [self._store(name) for name in self.mixtures]
        return [*stores, self.neighbours] if kinds & {"knn", "knn_l2"} else stores

    def _store(self, name: str) -> FittedBuffers:
        store = self.mixtures[name]
        assert isinstance(store, FittedBuffers)
        return store


def fit_mixture(
    features: Tensor, components: int, *, ridge: float = _RIDGE, seed: int = 0
) -> Mixture:
    """Fit a mixture of `components` Gaussians to `features` (N, D) by EM."""
    values = features.double()
    shares = _first_shares(values, components, seed)
    mixture = _maximised(values, shares, ridge)
    before = -math.inf
    for _ in range(_STEPS):
        joint = _joint(values, mixture)
        total = joint.logsumexp(1)
        mixture = _maximised(values, (joint - total[:, None]).exp(), ridge)
        reached = float(total.mean())
        if abs(reached - before) < _TOLERANCE:
            break
        before = reached
    return mixture


def log_density(features: Tensor, mixture: Mixture) -> Tensor:
    """Return the log-density (N,) of `features` (N, D) under `mixture`, in float64."""
    return _joint(features.double(), mixture).logsumexp(1)


def _first_shares(values: Tensor, components: int, seed: int) -> Tensor:
    """Return one-hot k-means clusters, (N, K)."""
    from sklearn.cluster import KMeans

    if not components <= len(values):
        raise ValueError(
            f"a mixture of {components} needs at least as many items, got {len(values)}"
        )
    if not bool(values.isfinite().all()):
        raise ValueError(
            "features must be finite to fit a mixture; training has diverged, lower "
            "the learning rate"
        )
    start = KMeans(n_clusters=components, n_init=1, random_state=seed)
    labels = start.fit(values.cpu().numpy()).labels_
    cluster = torch.as_tensor(labels, device=values.device).long()
    return nn.functional.one_hot(cluster, components).double()


def _maximised(values: Tensor, shares: Tensor, ridge: float) -> Mixture:
    """Return the mixture that fits `values` best, given `shares` (N, K): the M step."""
    sizes = shares.sum(0) + 10 * torch.finfo(values.dtype).eps
    means = (shares.T @ values) / sizes[:, None]
    scales = torch.empty(len(sizes), *values.shape[1:] * 2).to(values)
    for k, (mean, size) in enumerate(zip(means, sizes, strict=True)):
        gap = values - mean
        covariance = (shares[:, k, None] * gap).T @ gap / size
        covariance.diagonal().add_(ridge)
        scales[k] = _whitening(covariance)
    return Mixture((sizes / sizes.sum()).log(), means, scales)


def _whitening(covariance: Tensor) -> Tensor:
    lower, failed = torch.linalg.cholesky_ex(covariance)
    if int(failed):
        raise ValueError(
            "a mixture component has collapsed onto too few items; fit fewer "
            "components, or raise the ridge"
        )
    identity = torch.eye(len(lower), dtype=lower.dtype, device=lower.device)
    inverse: Tensor = torch.linalg.solve_triangular(lower, identity, upper=False)
    return inverse.T


def _joint(values: Tensor, mixture: Mixture) -> Tensor:
    """Return the logarithms (N, K) of share times density."""
    columns = []
    for log, mean, scale in zip(*mixture, strict=True):
        white = (values - mean) @ scale
        volume = scale.diagonal().log().sum()
        square = white.square().sum(1) + values.shape[1] * math.log(2 * math.pi)
        columns.append(log + volume - square / 2)
    return torch.stack(columns, 1)


def neighbour_distances(
    query: Tensor, reference: Tensor, counts: Sequence[int], *, angular: bool
) -> list[Tensor]:
    """Return mean distances (N,) of `query` (N, D) to the k nearest in `reference`.

    There is one tensor for each k in `counts`; `nearest_distances` says what a distance
    is.
    """
    nearest = nearest_distances(query, reference, max(counts), angular=angular)
    return [nearest[:, :k].mean(1) for k in counts]


def nearest_distances(
    query: Tensor, reference: Tensor, count: int, *, angular: bool
) -> Tensor:
    """Return the `count` smallest distances (N, count) of `query` (N, D), ascending.

    `reference` is (R, D). The distance is sqrt(2 - 2 cos) if `angular`, and Euclidean
    otherwise. A zero vector has cosine 0 with everything.
    """
    if angular:
        query, reference = _directions(query, spare=0), _directions(reference, spare=1)
    else:
        # Distances do not change, and their squares lose fewer digits.
        centre = reference.double().mean(0)
        query, reference = query.double() - centre, reference.double() - centre
    blocks = [
        _nearest(query[start : start + _BLOCK], reference, count)
        for start in range(0, len(query), _BLOCK)
    ]
    return torch.cat(blocks)


def _nearest(query: Tensor, reference: Tensor, k: int) -> Tensor:
    """Return the k smallest distances (B, k), ascending."""
    closeness = torch.addmm(-reference.square().sum(1) / 2, query, reference.T)
    index = closeness.topk(k, 1).indices
    # From differences, as 2 - 2 cos of a near neighbour is mostly rounding error.
    gaps = reference[index] - query[:, None]
    distances: Tensor = torch.linalg.vector_norm(gaps, dim=2)
    return distances.sort(1).values


def _directions(rows: Tensor, *, spare: int) -> Tensor:
    """Return unit rows; two more axes make zero rows orthogonal to all others."""
    wide = rows.double()
    # By the largest entry first, so that no square overflows or vanishes.
    largest = wide.abs().amax(1, keepdim=True)
    wide = wide / torch.where(largest > 0, largest, 1.0)
    length = torch.linalg.vector_norm(wide, dim=1, keepdim=True)
    wide = wide / torch.where(length > 0, length, 1.0)
    zero = (largest == 0).double()
    empty = torch.zeros_like(zero)
    return torch.cat([wide, *((zero, empty) if spare == 0 else (empty, zero))], 1)


def _parsed(name: str) -> _SelectScore:
    match = _NAME.fullmatch(name)
    if match is None or match[1] + (match[3] or "") == "gmm_l2":
        raise ValueError(
            "select must name gmm<components>, knn<neighbours> or knn<neighbours>_l2, "
            f"such as 'gmm4', got {name!r}"
        )
    return _SelectScore(name, match[1] + (match[3] or ""), int(match[2]))
