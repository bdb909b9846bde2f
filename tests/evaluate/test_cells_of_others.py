"""Judged cells that somebody else wrote, or changed: nothing runs, nothing is believed.

Folders of runs are copied and shared, with `.judged` in them.
"""

import hashlib
import io
import os
import pickle
import shutil
import sys
import zipfile
from dataclasses import is_dataclass
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest

from evaluate.made_runs import make_runs
from evaluate.test_judged_cells import PLAN, SIZES, cells_of, everything, judge
from qualms import caches
from qualms.caches import Cache
from qualms.evaluate import _cells, _judge_variants, _variant
from qualms.evaluate._cells import CellFolder
from qualms.evaluate._variant import JudgedVariant
from qualms.evaluate.benchmark import judge_plan
from qualms.records import DAMAGE, from_archive, record_kinds, to_archive
from qualms.report import stored_report
from qualms.report.benchmark_report import BenchmarkReport
from qualms.results import Result
from qualms.scores.calibration_line import LocalShare

KINDS = record_kinds((JudgedVariant, Result))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    make_runs(PLAN, out, sizes=SIZES)
    return out


@pytest.fixture
def runs(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "runs"))


@pytest.fixture
def judged_names(monkeypatch):
    names = []

    def judge_variant(judging, variant):
        names.append(variant.name)
        return _variant.judge_variant(judging, variant)

    monkeypatch.setattr(_judge_variants, "judge_variant", judge_variant)
    return names


def become(user, folder, monkeypatch):
    """Go on as another user, with a state folder of their own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / user))
    caches._key.cache_clear()


@pytest.fixture(autouse=True)
def _own_key():
    yield
    caches._key.cache_clear()


def text_of(word):
    encoded = word.encode()
    return b"X" + len(encoded).to_bytes(4, "little") + encoded


def named(module, name):
    return f"c{module}\n{name}\n".encode()


def called(function, *args):
    return function + b"(" + b"".join(args) + b"tR"


def importing(folder):
    """A pickle of records, scores and arrays alone that imports `folder`/evil.py.

    A module from the `__getattr__` of as_published gets a `__path__` by BUILD. A
    NamedTuple whose `__eq__` and `__str__` are replaced then passes as the name of a
    paper, and `__getattr__` imports a module below the first one.
    """
    raw = "values.evil".encode("utf-32-le")
    partial = named("functools", "partial")
    get = named("qualms.scores.as_published", "__getattr__")
    share = named("qualms.scores.calibration_line", "LocalShare")
    parts = named("qualms.scores.decomposition", "Decomposition")
    as_equal = called(partial, parts, b"K\x01", b"K\x02")
    as_text = called(
        partial,
        named("numpy._core.multiarray", "scalar"),
        called(named("numpy", "dtype"), text_of(f"U{len(raw) // 4}")),
        b"C" + bytes([len(raw)]) + raw,
    )
    module = called(get, text_of("values"))
    path = b"}" + text_of("__path__") + b"]" + text_of(str(folder)) + b"as"
    state = b"N}" + text_of("__eq__") + as_equal + b"s"
    state += text_of("__str__") + as_text + b"s\x86"
    impostor = called(share, b"K\x01" * len(LocalShare._fields))
    steps = (module, path, b"b0", share, state, b"b0", called(get, impostor), b"0N.")
    return b"\x80\x02" + b"".join(steps)


def cleared_dtype():
    """A pickle of an array of objects whose dtype says that it holds none."""
    dtype = np.dtype([("a", "O")])
    _, _, (version, order, sub, names, fields, size, align, _) = dtype.__reduce__()
    state = (version, order, sub, names, fields, size, align, 0)

    class Cleared:
        def __reduce__(self):
            return np.dtype, ("V8", False, True), state

    class Array:
        def __reduce__(self):
            frombuffer = np._core.numeric._frombuffer
            return frombuffer, (b"\xff" * 8, Cleared(), (1,), "C")

    return pickle.dumps(Array(), protocol=5)


ATTACKS = {
    "import": importing,
    "system": lambda _: b"cos\nsystem\n(X\x05\x00\x00\x00falsetR.",
    "dtype": lambda _: cleared_dtype(),
}


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("attack", ATTACKS)
def test_no_cell_runs_code(runs, judged_names, tmp_path, monkeypatch, attack, sealed):
    """Not even one that has the seal of the user."""
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')")
    first = judge(runs)
    judged_names.clear()
    payload = ATTACKS[attack](tmp_path)
    if sealed:
        monkeypatch.setattr(
            Cache, "get", lambda _, name, __: None if name == "contents" else payload
        )
    else:
        for path in cells_of(runs).iterdir():
            path.write_bytes(payload)
    assert everything(judge(runs)) == everything(first)
    assert judged_names == [variant.name for variant in PLAN.variants]
    assert "qualms.scores.as_published.values.evil" not in sys.modules


def test_other_numbers_with_a_renewed_digest_are_not_believed(runs, judged_names):
    first = judge(runs)
    judged_names.clear()
    for path in cells_of(runs).iterdir():
        content = path.read_bytes()[32:].replace(b"0.", b"9.")
        path.write_bytes(hashlib.sha256(content).digest() + content)
    assert everything(judge(runs)) == everything(first)
    assert judged_names == [variant.name for variant in PLAN.variants]


def test_cells_of_another_user_are_made_anew(runs, judged_names, tmp_path, monkeypatch):
    """Other numbers that somebody sealed with a key of their own, and digests too."""
    become("somebody", tmp_path, monkeypatch)
    theirs = everything(judge(runs))
    kept = {
        path.name.partition("-")[0]: path.read_bytes()
        for path in cells_of(runs).iterdir()
    }
    judged_names.clear()
    assert everything(judge(runs)) == theirs
    assert judged_names == []
    become("me", tmp_path, monkeypatch)
    before = set(cells_of(runs).iterdir())
    judge(runs)
    assert judged_names == [variant.name for variant in PLAN.variants]
    mine = [p for p in {*cells_of(runs).iterdir()} - before if "contents" not in p.name]
    assert len(mine) == len(PLAN.variants)  # theirs stay
    for path in mine:
        path.write_bytes(kept[path.name.partition("-")[0]])
    judged_names.clear()
    judge(runs)
    assert judged_names == [variant.name for variant in PLAN.variants]


def test_a_cell_is_bound_to_its_predictions(runs, judged_names, tmp_path):
    """A cell of mine that is put beside other predictions is not theirs."""
    judge(runs)
    other = Path(shutil.copytree(runs, tmp_path / "other"))
    judged_names.clear()
    judge(other)
    assert judged_names == [variant.name for variant in PLAN.variants]


@pytest.mark.parametrize("mode", [0o644, 0o660])
def test_a_key_that_others_can_read_is_made_anew(tmp_path, monkeypatch, mode):
    become("me", tmp_path, monkeypatch)
    cache = Cache(tmp_path / "cells")
    cache.put("one", "", b"content")
    assert cache.get("one", "") == b"content"
    key = tmp_path / "me" / "qualms" / "cache.key"
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    key.chmod(mode)
    caches._key.cache_clear()
    assert cache.get("one", "") is None
    assert key.read_bytes() != before
    assert key.stat().st_mode & 0o777 == 0o600


def test_without_a_place_for_a_key_nothing_is_kept(runs, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    become("file", tmp_path, monkeypatch)
    assert everything(judge(runs)) == everything(judge_plan(PLAN, runs))
    assert not cells_of(runs).exists()


# Archives of records.


def archive(text, **arrays):
    """An archive of records with any text and arrays."""
    file = io.BytesIO()
    np.savez(file, records=np.frombuffer(text.encode(), np.uint8), **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"value": 1}',
        '{"value": {}, "fields": {}}',
        '{"value": ["system", "ls"], "fields": {"system": ["command"]}}',
        '{"value": ["Result", 1], "fields": {"Result": ["__class__"]}}',
        '{"value": ["Result", 1, 2], "fields": {"Result": ["labels"]}}',
        '{"value": ["array", "f8", 0, -1], "fields": {}}',
        '{"value": ["array", "f8", -1, 1], "fields": {}}',
        '{"value": ["array", "f8", 0, 9], "fields": {}}',
        '{"value": ["array", "O", 0, 1], "fields": {}}',
        '{"value": ["dict", [["list"], 1]], "fields": {}}',
        '{"value": [[]], "fields": {}}',
        '{"value": ' + "[" * 99_999,
    ],
)
def test_an_archive_makes_nothing_but_records(text):
    with pytest.raises(DAMAGE):
        from_archive(archive(text, f8=np.zeros(2)), KINDS)


@pytest.mark.parametrize(
    "array",
    [
        np.array([(1, 2.0)], [("a", "i4"), ("b", "f8")]),
        np.array(["text"]),
        np.zeros((2, 2)),
        np.array(["2020"], "M8[Y]"),
        np.zeros(1, "V8"),
    ],
)
def test_an_archive_has_arrays_of_numbers_only(array):
    with pytest.raises(ValueError, match="an array must hold numbers, in one axis"):
        from_archive(archive('{"value": 1, "fields": {}}', f8=array), KINDS)


def test_an_archive_of_objects_is_not_loaded():
    file = io.BytesIO()
    np.savez(file, f8=np.array([os.system], dtype=object))
    with pytest.raises(DAMAGE):
        from_archive(file.getvalue(), KINDS)


def test_an_archive_that_unpacks_to_far_more_is_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("f8.npy", bytes(100 << 20))
    with pytest.raises(ValueError, match="too large when it is unpacked"):
        from_archive(file.getvalue(), KINDS)


def test_damaged_archives_say_so_and_no_more():
    result = Result(labels={"score": "nll"}, value=0.5, values=(0.25, float("nan")))
    values = [result, np.arange(6.0).reshape(2, 3).T, {("a", 1): None}, np.float32(2)]
    content = to_archive(JudgedVariant(results=values), KINDS, compressed=True)
    read = from_archive(content, KINDS).results
    assert repr(read[0]) == repr(result)
    assert read[1].tolist() == values[1].tolist()
    assert read[2:] == values[2:]
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(content)
        for at in random.integers(len(content), size=3):
            damaged[at] ^= 1 << int(random.integers(8))
        try:
            from_archive(bytes(damaged), KINDS)
        except DAMAGE:
            continue


def test_a_cell_of_another_kind_is_no_cell(tmp_path):
    cells = CellFolder(tmp_path)
    cells.cache.put("one", "key", to_archive(Result(labels={}), KINDS))
    assert cells.get("one", "key") is None


def records_in(hint):
    """All records that a type may hold, in its fields and theirs."""
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        yield hint
        for each in get_type_hints(hint).values():
            yield from records_in(each)
    for part in get_args(hint):
        yield from records_in(part)


@pytest.mark.parametrize(
    ("record", "kinds"),
    [(JudgedVariant, _cells._KINDS), (BenchmarkReport, stored_report._KINDS)],
)
def test_every_record_that_is_stored_is_known(record, kinds):
    """Otherwise nothing of its kind would be stored, without a word."""
    of_tables = {"CodedColumn", "SeriesColumn"}  # a stored report has no rows
    assert {each.__name__ for each in records_in(record)} - of_tables <= {*kinds}
