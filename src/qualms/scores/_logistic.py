"""A logistic curve fitted to counts, to the last digit."""

from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit

from qualms.scores._arrays import Array

_MAX_STEPS = 100
_STEP_TOLERANCE = 1e-9


class Line(NamedTuple):
    """Log-odds as a line: slope x + level."""

    slope: float
    level: float


def fit_line(x: Array, target: Array, count: Array) -> Line:
    """The line that maximises the likelihood of `target` successes out of `count`.

    `x` must vary, and `target` lie strictly between 0 and `count` in sum. Newton steps,
    halved while they overshoot: the likelihood is concave, so this always arrives.
    """
    line = np.array([0.0, logit(target.sum() / count.sum())])
    loss = _loss(line, x, target, count)
    for _ in range(_MAX_STEPS):
        step = _newton_step(line, x, target, count)
        tried = _loss(line - step, x, target, count)
        while tried > loss + 1e-12 * abs(loss):
            step = step / 2.0
            tried = _loss(line - step, x, target, count)
        line, loss = line - step, tried
        if np.abs(step).max() < _STEP_TOLERANCE * (1.0 + np.abs(line).max()):
            break
    return Line(float(line[0]), float(line[1]))


def _newton_step(line: Array, x: Array, target: Array, count: Array) -> Array:
    chance = expit(line[0] * x + line[1])
    residual = count * chance - target
    weight = count * chance * (1.0 - chance)
    mixed = weight @ x
    curvature = np.array([[weight @ x**2, mixed], [mixed, weight.sum()]])
    gradient = np.array([residual @ x, residual.sum()])
    return np.linalg.solve(curvature, gradient)


def _loss(line: Array, x: Array, target: Array, count: Array) -> float:
    odds = line[0] * x + line[1]
    softplus = np.maximum(odds, 0.0) + np.log1p(np.exp(-np.abs(odds)))
    return float(count @ softplus - target @ odds)
