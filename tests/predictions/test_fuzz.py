"""Whatever a file holds, it is read or refused in a sentence; nothing else happens."""

import json
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from predictions import made
from qualms.predictions import Predictions, PredictionsError, build, read, write

EXAMPLES = int(os.environ.get("QUALMS_FUZZ", "60"))
fuzz = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
CASES = {
    "classification": (lambda: made.classification(draws=1), {}),
    "regression": (lambda: made.regression(draws=1), {"select": {"gmm": "mean"}}),
    "embedding": (made.embedding, {}),
}


def refused_or_read(act):
    """True if `act` gave predictions, False if it refused them in one sentence."""
    found, sentence = None, ""
    try:
        found = act()
    except PredictionsError as error:
        sentence = str(error)
    if found is None:
        assert 0 < len(sentence) <= 1000
        return False
    assert isinstance(found, Predictions)
    assert max(map(len, found.notes), default=0) <= 500
    for name, array in found.arrays.items():
        assert array.dtype.kind in "fiubU"
        kept = array.dtype.kind != "f" or name.startswith("extra/")
        assert kept or np.isfinite(array).all()
    return True


@st.composite
def damage(draw):
    """A way to damage bytes: overwrite, cut, insert, double or append some."""
    kind = draw(st.sampled_from(["overwrite", "cut", "insert", "drop", "append"]))
    where = draw(st.floats(0, 1))
    junk = draw(st.binary(min_size=1, max_size=12))

    def apply(data):
        at = int(where * (len(data) - 1))
        return {
            "overwrite": data[:at] + junk + data[at + len(junk) :],
            "cut": data[:at],
            "insert": data[:at] + junk + data[at:],
            "drop": data[:at] + data[at + len(junk) :],
            "append": data + junk,
        }[kind]

    return apply


@pytest.mark.parametrize("ending", [".safetensors", ".npz", ".csv", ".parquet"])
@pytest.mark.parametrize("case", CASES)
@fuzz
@given(hits=st.lists(damage(), min_size=1, max_size=3))
def test_a_damaged_file_is_read_or_refused(tmp_path, case, ending, hits):
    path = tmp_path / f"whole{ending}"
    if not path.exists():
        arrays, header = CASES[case]
        write(path, arrays(), header=made.HEADER | header)
    data = path.read_bytes()
    for hit in hits:
        data = hit(data)
    harmed = tmp_path / f"harmed{ending}"
    harmed.write_bytes(data)
    refused_or_read(lambda: read(harmed))


@fuzz
@given(hits=st.lists(damage(), min_size=1, max_size=3), inside=st.booleans())
def test_a_damaged_folder_is_read_or_refused(tmp_path, hits, inside):
    folder = tmp_path / "preds"
    write(folder, made.segmentation(), header={"ignore": 255})
    path = folder / ("000001.safetensors" if inside else "index.json")
    data = path.read_bytes()
    for hit in hits:
        data = hit(data)
    path.write_bytes(data)

    def act():
        predictions = read(folder)
        assert len(list(predictions.maps)) == predictions.n
        return predictions

    refused_or_read(act)


NAMES = [
    "target",
    "probs",
    "prob",
    "mean",
    "var",
    "lower",
    "upper",
    "embedding",
    "uncertainty/a",
    "uncertainty_cropped/a",
    "select/a",
    "votes",
    "upstream",
    "target_probs",
    "item",
    "group",
    "cluster",
    "shifted",
    "thumbnail",
    "uncertainty",
    "raters",
    "other",
    "known",
    "std",
    "extra/a",
]
DTYPES = st.one_of(
    hnp.scalar_dtypes(),
    st.sampled_from(
        [np.dtype(object), np.dtype("S3"), np.dtype("<U4"), np.dtype("V3")]
    ),
)
SHAPES = st.lists(st.sampled_from([0, 1, 2, 3, 4]), max_size=4).map(tuple)


def arrays_of(dtype, shape):
    if dtype.kind == "O":
        return st.just(np.full(shape, None, dtype=object))
    if dtype.kind == "V":
        return st.just(np.zeros(shape, dtype))
    return hnp.arrays(dtype, shape)


ARRAYS = st.dictionaries(
    st.sampled_from(NAMES),
    st.tuples(DTYPES, SHAPES).flatmap(lambda pair: arrays_of(*pair)),
    max_size=6,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "format",
            "task",
            "dataset",
            "seed",
            "options",
            "seconds",
            "alpha",
            "ignore",
            "select",
            "pooled",
            "shapes",
            "version",
            "about",
            "else",
        ]
    ),
    JSON,
    max_size=4,
)


@fuzz
@given(arrays=ARRAYS, header=HEADERS, logits=st.booleans())
def test_arbitrary_arrays_are_read_or_refused(arrays, header, logits):
    refused_or_read(lambda: build(arrays, header=header, logits=logits))
    refused_or_read(lambda: build(arrays, logits=logits))


@fuzz
@given(arrays=ARRAYS, header=HEADERS)
def test_arbitrary_npz_files_are_read_or_refused(tmp_path, arrays, header):
    path = tmp_path / "p.npz"
    np.savez(path, header=json.dumps(header), **arrays)
    refused_or_read(lambda: read(path))


@fuzz
@given(
    case=st.sampled_from(sorted(CASES)),
    row=st.integers(0, made.N - 1),
    value=st.floats(width=32) | st.sampled_from([2.0**70, -0.5, np.nan, np.inf]),
    data=st.data(),
)
def test_one_wrong_value_is_read_or_refused(case, row, value, data):
    arrays, header = CASES[case]
    held = arrays()
    name = data.draw(st.sampled_from(sorted(held)))
    if held[name].dtype.kind == "U":
        held[name] = np.arange(made.N)
    changed = held[name].astype(float)
    changed.reshape(-1)[row] = value
    kept = refused_or_read(lambda: build(held | {name: changed}, header=header))
    assert not (kept and not np.isfinite(value))


CELLS = st.text(max_size=6) | st.sampled_from(["0", "1", "0.5", "nan", "true", ""])


@fuzz
@given(
    names=st.lists(
        st.sampled_from([*NAMES, "prob_0", "prob_1", "votes_0"]), max_size=4
    ),
    rows=st.lists(st.lists(CELLS, max_size=4), max_size=4),
)
def test_arbitrary_tables_are_read_or_refused(tmp_path, names, rows):
    path = tmp_path / "p.csv"
    lines = [",".join(names), *(",".join(row) for row in rows)]
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    refused_or_read(lambda: read(path))


@fuzz
@given(case=st.sampled_from(sorted(CASES)), ending=st.sampled_from([".npz", ".csv"]))
def test_an_undamaged_file_is_always_read(tmp_path, case, ending):
    arrays, header = CASES[case]
    path = write(tmp_path / f"p{ending}", arrays(), header=header)
    assert refused_or_read(lambda: read(path))
