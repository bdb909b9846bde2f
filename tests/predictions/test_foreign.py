"""Arrays of every framework come in, by what they can do."""

import numpy as np
import pandas as pd
import pytest
import torch

from qualms.predictions import PredictionsError, build

TARGET = [0, 1, 1]
PROB = [0.25, 0.5, 0.75]


class Jax:
    """Behaves as a JAX or TensorFlow array does: it knows how to become NumPy's."""

    def __init__(self, values, dtype=None):
        self.values = np.asarray(values, dtype)

    def __array__(self, dtype=None, copy=None):
        return self.values if dtype is None else self.values.astype(dtype)


class OnGpu:
    """Behaves as a CUDA tensor: it must be detached and moved before NumPy sees it."""

    def __init__(self, tensor, moved=False):
        self.tensor, self.moved = tensor, moved

    def detach(self):
        return OnGpu(self.tensor.detach(), self.moved)

    def cpu(self):
        return OnGpu(self.tensor, True)

    def is_floating_point(self):
        return self.tensor.is_floating_point()

    def element_size(self):
        return self.tensor.element_size()

    def float(self):
        return OnGpu(self.tensor.float(), self.moved)

    def numpy(self):
        assert self.moved
        return self.tensor.numpy()


GIVEN = {
    "list": PROB,
    "tuple": tuple(PROB),
    "numpy half": np.array(PROB, np.float16),
    "numpy long": np.array(PROB, np.longdouble),
    "numpy objects": np.array(PROB, dtype=object),
    "numpy strided": np.repeat(PROB, 2)[::2],
    "numpy big-endian": np.array(PROB, ">f4"),
    "torch": torch.tensor(PROB),
    "torch with gradient": torch.tensor(PROB, requires_grad=True),
    "torch bfloat16": torch.tensor(PROB, dtype=torch.bfloat16),
    "torch float8": torch.tensor(PROB).to(torch.float8_e4m3fn),
    "torch on a gpu": OnGpu(torch.tensor(PROB, dtype=torch.bfloat16)),
    "list of torch": [torch.tensor(p, requires_grad=True) for p in PROB],
    "jax": Jax(PROB, np.float32),
    "pandas": pd.Series(PROB, index=[5, 3, 9]),
    "pandas nullable": pd.Series(PROB, dtype="Float64"),
}


@pytest.mark.parametrize("kind", GIVEN)
def test_numbers_of_every_framework_are_read(kind):
    predictions = build({"target": TARGET, "prob": GIVEN[kind]})
    assert predictions.arrays["probs"][0, :, 1].tolist() == PROB
    assert predictions.arrays["probs"].dtype.isnative


@pytest.mark.parametrize(
    "names",
    [
        ["a", "b", "c"],
        np.array(["a", "b", "c"]),
        np.array([b"a", b"b", b"c"]),
        np.array(["a", "b", "c"], dtype=object),
        np.array(["a", "b", "c"], dtype=np.dtypes.StringDType()),
        pd.Series(["a", "b", "c"]),
        pd.Series(["a", "b", "c"], dtype="category"),
    ],
    ids=lambda names: f"{type(names).__name__} {getattr(names, 'dtype', '')}",
)
def test_text_of_every_framework_is_read(names):
    predictions = build({"target": TARGET, "prob": PROB, "item": names, "group": names})
    assert predictions.arrays["item"].tolist() == ["a", "b", "c"]
    assert predictions.arrays["group"].dtype.kind == "U"


@pytest.mark.parametrize(
    "flags",
    [
        [True, False, True],
        [1.0, 0, 1],
        torch.tensor([True, False, True]),
        pd.Series([True, False, True], dtype="boolean"),
    ],
)
def test_flags_of_every_framework_are_read(flags):
    predictions = build({"target": TARGET, "prob": PROB, "shifted": flags})
    assert predictions.arrays["shifted"].tolist() == [True, False, True]


def test_draws_may_come_as_a_list_of_tensors():
    predictions = build({"target": TARGET, "prob": [torch.tensor(PROB)] * 4})
    assert predictions.draws == 4


class Stubborn:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("still on the device\nand more")


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([[0.1], [0.1, 0.2]], "array 'prob' cannot be turned into an array"),
        (Stubborn(), r"cannot be turned into an array \(still on the device\)"),
        ([0.1, None, 0.2], "not Python objects, row 1 is None; convert it"),
        ([0.1, {}, 0.2], "not Python objects, row 1 is {}"),
        (pd.Series([0.1, None, 0.2], dtype="Float64"), "row 1 is"),
        (np.ma.array(PROB, mask=[0, 1, 0]), "array 'prob' has masked values"),
        (np.zeros(3, dtype=[("a", "f4")]), "array 'prob' must be numbers, got"),
        (np.zeros(3, dtype="V4"), "array 'prob' must be numbers or text, got"),
        (np.zeros(3, "M8[s]"), "array 'prob' must be numbers, got datetime64"),
        ([10**30, 1, 2], "not Python objects, row 0 is 1000000"),
        ("text", r"array 'prob' must have shape \(M, N\) or \(N,\), got \(\)"),
        (None, "array 'prob' must be numbers or text, not Python objects"),
    ],
)
def test_what_is_no_array_is_refused(values, sentence):
    with pytest.raises(PredictionsError, match=sentence):
        build({"target": TARGET, "prob": values})
