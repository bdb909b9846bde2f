"""Outputs of a trained model, brought into the one form that methods read.

Classes have one logit each on axis 1, or a single one for two classes. A regression has
a mean, and may have a variance beside it. Probabilities become their logarithms, whose
softmax they are. Whether numbers are logits or probabilities is never guessed: the user
states it, and the values are compared with that statement.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from qualms.shelf import names, traits
from qualms.trained._regions import separate_regions
from qualms.wording import suggest

CLASS_FORMS = ("logits", "probabilities")
EMBEDDING_FORMS = ("embeddings", *CLASS_FORMS)
VALUE_FORMS = ("mean", "mean_variance", "mean_log_variance", "mean_deviation")
_NAMED = ("logits", "out")
"""Keys of the class scores, in models that return a mapping."""
_SECOND = ("var", "variance")
_LARGEST = 80.0
"""Logarithm of a variance beyond which float32 has no number."""
_ROUNDING = {torch.float16: 2e-2, torch.bfloat16: 2e-2}
_SUMS = 1e-3
"""Most by which sums of probabilities may miss 1."""
_SIGMOIDS = ", and return a softmax if each class has a sigmoid"
_REGIONS = ", or name the regions that overlap: regions=[...]"
_PAIR = 2
_FLAT = 2
"""Axes of the scores of items that are no maps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputReader:
    """Reader of the values that a model returns."""

    task: str
    form: str
    """One of `CLASS_FORMS`, `VALUE_FORMS` or `EMBEDDING_FORMS`."""
    explicit: bool
    """True if the user named the form; if not, logits that look like probabilities are
    refused."""
    regions: int = 0
    """Number of regions that overlap, each with a sigmoid; 0 for classes."""

    def __call__(self, returned: Any, x: Tensor) -> Tensor:
        """Return outputs (B, K, *space) in float32 from what a model gave for `x`."""
        if "values" in traits(self.task):
            return self._values(returned)
        if self.form == "embeddings":
            return _embeddings(returned, x)
        scores = _scores(returned)
        space = x.ndim - 2 if "pixels" in traits(self.task) else 0
        if scores.ndim == space + 1:  # two classes
            scores = scores[:, None]
        if scores.ndim != space + 2 or len(scores) != len(x):
            shape = "(B, C)" if not space else f"(B, C{', n' * space})"
            raise ValueError(
                f"for {self.task} a model must return class scores {shape} for a batch"
                f" of B items, got shape {tuple(scores.shape)} for {len(x)} items; wrap"
                " it in a module that does"
            )
        if self.regions:
            self._check_regions(scores)
            scores = separate_regions(scores)
        if self.form == "probabilities":
            coarse = bool(space) and scores.shape[2:] != x.shape[2:]
            return _log_probabilities(scores, coarse=coarse)
        return scores.float()

    def _check_regions(self, scores: Tensor) -> None:
        if scores.shape[1] != self.regions:
            raise ValueError(
                f"regions names {self.regions}, and the model returns"
                f" {scores.shape[1]} maps; name one region for each"
            )

    def check_form(self, outputs: Tensor) -> None:
        """Raise if logits look like probabilities, and the user named no form."""
        if self.form != "logits" or self.explicit:
            return
        if not bool((outputs >= 0).all() and (outputs <= 1).all() and outputs.any()):
            return
        one = outputs.shape[1] == 1
        if one or bool(((outputs.sum(1) - 1).abs() < _SUMS).all()):
            raise ValueError(
                "the outputs of the model look like probabilities and not like logits:"
                f" all lie between 0 and 1{'' if one else ' and sum to 1'}; say"
                " outputs='probabilities', or outputs='logits' if they are none"
            )
        regions = "" if outputs.ndim == _FLAT else _REGIONS
        raise ValueError(
            "the outputs of the model look like a sigmoid of each class and not like"
            f" logits: all lie between 0 and 1 and do not sum to 1; if one class"
            " is true of each item, return a softmax and say outputs='probabilities';"
            " if several may be, predict each of them with a model of its own"
            f"{regions}; say outputs='logits' if these are logits"
        )

    def _values(self, returned: Any) -> Tensor:
        pair = self.form != "mean"
        columns = _columns(returned)
        if columns.shape[1] != 1 + pair:
            raise ValueError(
                f"with outputs={self.form!r} a regression model must return"
                f" {'a mean and a second number' if pair else 'one number'} for each"
                f" item, got {columns.shape[1]}; outputs may be"
                f" {', '.join(map(repr, VALUE_FORMS))}"
            )
        if not pair:
            return columns
        mean, second = columns.unbind(1)
        return torch.stack([mean, _variance(second, self.form)], 1)


def make_reader(task: str, outputs: str | None, *, regions: int = 0) -> OutputReader:
    """Return the reader for a task and the form of outputs that the user states."""
    known = [each for each in names("tasks") if _forms(each)]
    if task not in known:
        raise ValueError(
            f"task must be one of {', '.join(known)}, got {task!r}."
            f"{suggest(str(task), known)}"
        )
    forms = _forms(task)
    if outputs is not None and outputs not in forms:
        raise ValueError(
            f"outputs of {task} must be one of {', '.join(map(repr, forms))}, got"
            f" {outputs!r}.{suggest(str(outputs), forms)}"
        )
    name: Any = task
    return OutputReader(
        task=name,
        form=outputs or forms[0],
        explicit=outputs is not None,
        regions=regions,
    )


def _forms(task: str) -> tuple[str, ...]:
    """Return the names of what a model for a task may return."""
    kind = traits(task)
    if "vectors" in kind:
        return EMBEDDING_FORMS
    if "values" in kind:
        return VALUE_FORMS
    return CLASS_FORMS if "probabilities" in kind else ()


def _embeddings(returned: Any, x: Tensor) -> Tensor:
    """Return embeddings (B, D) in float32."""
    embedding = _scores(returned)
    if embedding.ndim != _FLAT or len(embedding) != len(x):
        raise ValueError(
            "for embeddings a model must return vectors (B, D) for a batch of B items,"
            f" got shape {tuple(embedding.shape)} for {len(x)} items; wrap it in a"
            " module that pools them, or say outputs='logits' if it is a classifier"
        )
    return embedding.float()


def _scores(returned: Any) -> Tensor:
    scores = returned
    if isinstance(returned, Mapping):
        scores = next((returned[n] for n in _NAMED if n in returned), returned)
    elif not isinstance(returned, Tensor):
        scores = getattr(returned, "logits", returned)
    if not isinstance(scores, Tensor):
        named = " or ".join(map(repr, _NAMED))
        raise ValueError(_unreadable(returned, f"a mapping with {named}"))
    return scores


def _columns(returned: Any) -> Tensor:
    """Return the numbers of a regression model, (B, K) in float32."""
    values: Any = returned
    if isinstance(returned, Mapping) and "mean" in returned:
        second = [returned[name] for name in _SECOND if name in returned]
        values = (returned["mean"], *second)
    if isinstance(values, tuple | list) and all(isinstance(v, Tensor) for v in values):
        values = torch.cat([_as_columns(part) for part in values], 1)
    if not isinstance(values, Tensor):
        also = "a pair or a mapping with 'mean' and 'var'"
        raise ValueError(_unreadable(returned, also))
    columns = _as_columns(values)
    if columns.ndim != _PAIR:
        raise ValueError(
            "a regression model must return numbers (B,) or (B, 1) for a batch of B"
            f" items, got shape {tuple(columns.shape)}; wrap it in a module that does"
        )
    return columns.float()


def _as_columns(values: Tensor) -> Tensor:
    return values[:, None] if values.ndim == 1 else values


def _unreadable(returned: Any, also: str) -> str:
    keys = ""
    if isinstance(returned, Mapping):
        keys = f" with {', '.join(map(repr, returned))}"
    return (
        f"a model must return a tensor, or {also}, got"
        f" {type(returned).__name__}{keys}; wrap it in a module that does"
    )


def _variance(second: Tensor, form: str) -> Tensor:
    if form == "mean_log_variance":
        return second.clamp(-_LARGEST, _LARGEST).exp()
    if bool((second < 0).any()):
        raise ValueError(
            f"with outputs={form!r} the second number of an item must not be negative,"
            f" got {second.min().item():.4g}; say outputs='mean_log_variance' if it is"
            " the logarithm of a variance"
        )
    return second.square() if form == "mean_deviation" else second


def _log_probabilities(probs: Tensor, *, coarse: bool) -> Tensor:
    """Return logits whose softmax is `probs` (B, C, *space); of class 1 if C is 1."""
    tolerance = _ROUNDING.get(probs.dtype, _SUMS)
    probs = probs.float()
    if coarse:
        raise ValueError(
            "maps of probabilities must have the size of their images, got"
            f" {tuple(probs.shape[2:])}; return logits, which are then interpolated, or"
            " interpolate the probabilities in the model"
        )
    low, high = probs.min().item(), probs.max().item()
    sums = probs.sum(1)
    if not (low >= -tolerance and high <= 1 + tolerance):
        raise ValueError(
            f"probabilities must lie between 0 and 1, got {low:.4g} to {high:.4g}; say"
            " outputs='logits' if these are logits"
        )
    if probs.shape[1] > 1 and not bool(((sums - 1).abs() <= tolerance).all()):
        raise ValueError(
            "the probabilities of an item must sum to 1, got sums from"
            f" {sums.min().item():.4g} to {sums.max().item():.4g}; say outputs='logits'"
            " if these are logits" + (_REGIONS if probs.ndim > _FLAT else _SIGMOIDS)
        )
    tiny = torch.finfo(torch.float32).tiny
    logs = probs.clamp(min=tiny).log()
    if probs.shape[1] > 1:
        return logs
    return logs - (1 - probs).clamp(min=tiny).log()
