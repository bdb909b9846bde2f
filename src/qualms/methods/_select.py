"""Scores that say which items to leave out, from the features of the training split.

`gmm<k>` is minus the log-density of a Gaussian mixture of k components, `knn<k>` the
mean angular distance to the k nearest training features and `knn<k>_l2` the Euclidean
one (Gustafsson et al., 2023). Both are larger for items unlike the training split.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from qualms.methods._found import Found
from qualms.methods._mixture import RIDGE, Mixture, fit_mixture, log_density
from qualms.methods._neighbours import neighbour_distances

_NAME = re.compile(r"(gmm|knn)([1-9]\d*)(_l2)?")
_PARTS = Mixture._fields


class _Score(NamedTuple):
    name: str
    kind: str
    """gmm, knn or knn_l2."""
    size: int
    """Components or neighbours."""


def rules(names: Iterable[str]) -> dict[str, str]:
    """How each score is pooled over runs: mean density, or mean distance."""
    return {
        score.name: "logmeanexp" if score.kind == "gmm" else "mean"
        for score in map(_parsed, names)
    }


class Selectors(nn.Module):
    """Selection scores: fitted on training features, then scoring any features."""

    def __init__(self, names: Sequence[str], *, ridge: float = RIDGE) -> None:
        super().__init__()
        self.ridge = ridge
        self.scores = tuple(map(_parsed, names))
        mixtures = {s.name: Found(_PARTS) for s in self.scores if s.kind == "gmm"}
        self.mixtures = nn.ModuleDict(mixtures)
        self.neighbours = Found(("features",))

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
        """select/<name> (1, B) of features (B, D); nothing before `fit`."""
        if not all(store.ready for store in self._stores()):
            return {}
        found = {
            score.name: -log_density(features, self._mixture(score.name))
            for score in self.scores
            if score.kind == "gmm"
        }
        for kind in ("knn", "knn_l2"):
            found |= self._distances(features, kind)
        return {
            f"select/{score.name}": found[score.name][None] for score in self.scores
        }

    def _distances(self, features: Tensor, kind: str) -> dict[str, Tensor]:
        asked = [score for score in self.scores if score.kind == kind]
        if not asked:
            return {}
        distances = neighbour_distances(
            features,
            self.neighbours.held("features"),
            [score.size for score in asked],
            angular=kind == "knn",
        )
        return {s.name: values for s, values in zip(asked, distances, strict=True)}

    def _keep_mixture(self, name: str, mixture: Mixture) -> None:
        for part, values in zip(_PARTS, mixture, strict=True):
            self._store(name).keep(part, values)

    def _mixture(self, name: str) -> Mixture:
        return Mixture(*(self._store(name).held(part) for part in _PARTS))

    def _stores(self) -> list[Found]:
        kinds = {score.kind for score in self.scores}
        stores = [self._store(name) for name in self.mixtures]
        return [*stores, self.neighbours] if kinds & {"knn", "knn_l2"} else stores

    def _store(self, name: str) -> Found:
        store = self.mixtures[name]
        assert isinstance(store, Found)
        return store


def _parsed(name: str) -> _Score:
    match = _NAME.fullmatch(name)
    if match is None or match[1] + (match[3] or "") == "gmm_l2":
        raise ValueError(
            "select must name gmm<components>, knn<neighbours> or knn<neighbours>_l2, "
            f"such as 'gmm4', got {name!r}"
        )
    return _Score(name, match[1] + (match[3] or ""), int(match[2]))
