"""Whatever a file holds, the command scores it or refuses it in one sentence.

A file is made as bytes under a name, so that a folder, a table with its sidecar and a
single file are all the same thing here: a mapping of names to bytes.
"""

import contextlib
import functools
import io
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import qualms
from predictions import made
from qualms.cli import main
from qualms.predictions import Header, write

# Of the thousand files, the share of each kind. They are the same in every run, unless
# QUALMS_FUZZ=20 asks for twenty thousand others.
SHARES = {"damaged": 250, "bytes": 150, "arrays": 300, "tables": 150, "folders": 150}
TIMES = float(os.environ.get("QUALMS_FUZZ", "1"))
ENDINGS = (".safetensors", ".npz", ".csv", ".parquet")


def thousand(kind):
    return settings(
        max_examples=int(SHARES[kind] * TIMES),
        suppress_health_check=list(HealthCheck),
    )


def run(arguments):
    """The exit code of the command, and what it wrote to both streams."""
    out, err = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["qualms", *map(str, arguments)]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
    except SystemExit as stopped:
        code = stopped.code or 0
    else:
        code = 0
    finally:
        sys.argv = before
    return code, out.getvalue(), err.getvalue()


def scored_or_refused(code, out, err):
    if code == 0:
        assert err == ""
        assert out != ""
    else:
        assert code == 2
        assert err.startswith("qualms: ")
        assert len(err.splitlines()) == 1
        assert 20 < len(err) < 3000
        assert err.rstrip("\n").isprintable()
    assert "Traceback" not in out + err


def survives(files, verb, name="p"):
    with tempfile.TemporaryDirectory() as folder:
        path = laid(Path(folder), files, name)
        scored_or_refused(*run([verb[0], path, *verb[1:]]))


def laid(folder, files, name):
    for file, data in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder / name


VERBS = st.sampled_from(
    [
        ("check",),
        ("score", "--resamples", "0"),
        ("score", "--resamples", "0", "--by-group"),
        ("score", "--resamples", "0", "--json"),
    ]
)
TASKS = {
    "classification": (made.classification, {}),
    "regression": (made.regression, {"select": {"gmm": "logmeanexp"}}),
    "intervals": (made.intervals, {"alpha": 0.1}),
    "embedding": (made.embedding, {}),
    "segmentation": (made.segmentation, {"ignore": 255}),
}


def arrays_of(task):
    make, _ = TASKS[task]
    return make(draws=1) if task in ("classification", "regression") else make()


@functools.cache
def valid(task, ending):
    """The bytes of valid predictions by file name; the path to read is 'p' + ending."""
    with tempfile.TemporaryDirectory() as folder:
        header = made.HEADER | TASKS[task][1]
        write(Path(folder) / f"p{ending}", arrays_of(task), header=header)
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(Path(folder).rglob("*"))
            if path.is_file()
        }


CARRIED = [(task, ending) for task in list(TASKS)[:-1] for ending in ENDINGS]
CARRIED += [("segmentation", "")] * 3


@pytest.mark.parametrize(("task", "ending"), sorted(set(CARRIED)))
@pytest.mark.parametrize("verb", ["check", "score"])
def test_the_files_before_the_damage_are_valid(tmp_path, task, ending, verb):
    path = laid(tmp_path, valid(task, ending), f"p{ending}")
    code, _, err = run([verb, path, *(["--resamples", "0"] * (verb == "score"))])
    assert (code, err) == (0, "")


@st.composite
def damage(draw):
    """A way to damage bytes: overwrite, cut, insert, drop, append or flip a bit."""
    kind = draw(
        st.sampled_from(["overwrite", "cut", "insert", "drop", "append", "flip"])
    )
    where = draw(st.floats(0, 1))
    junk = draw(st.binary(min_size=1, max_size=9))

    def apply(data):
        at = int(where * max(len(data) - 1, 0))
        flipped = bytes([data[at] ^ (1 << junk[0] % 8)]) if data else b""
        return {
            "overwrite": data[:at] + junk + data[at + len(junk) :],
            "cut": data[:at],
            "insert": data[:at] + junk + data[at:],
            "drop": data[:at] + data[at + len(junk) :],
            "append": data + junk,
            "flip": data[:at] + flipped + data[at + 1 :],
        }[kind]

    return apply


@thousand("damaged")
@given(
    carried=st.sampled_from(CARRIED),
    which=st.integers(0, 9),
    hits=st.lists(damage(), min_size=1, max_size=3),
    verb=VERBS,
)
def test_a_damaged_file(carried, which, hits, verb):
    files = dict(valid(*carried))
    name = sorted(files)[which % len(files)]
    for hit in hits:
        files[name] = hit(files[name])
    survives(files, verb, f"p{carried[1]}")


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def lying_npz(dtype, shape, data=b"\0" * 64):
    """An .npz whose member claims more than it holds."""
    member = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(member, about)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("probs.npy", member.getvalue() + data)
        archive.writestr("target.npy", member.getvalue() + data)
    return whole.getvalue()


SIZES = st.sampled_from([0, 1, 3, 2**31, 2**40, 2**62, 2**63, 2**64, 10**30, -1])
CLAIMS = st.one_of(
    st.builds(
        lambda dtype, shape, ends: safetensors(
            {"target": {"dtype": dtype, "shape": shape, "data_offsets": ends}}, b"0000"
        ),
        st.sampled_from(["F32", "I64", "BF16", "F8_E4M3", "U8", "BOOL", "X"]),
        st.lists(SIZES, max_size=3),
        st.lists(SIZES, max_size=3),
    ),
    st.builds(
        lambda length, rest: length.to_bytes(8, "little") + rest,
        st.integers(0, 2**64 - 1),
        st.binary(max_size=99),
    ),
    st.builds(
        lying_npz,
        st.sampled_from(["<f8", "|O", "<U9", "|V5", "<c16", "<M8[s]", "|S0"]),
        st.lists(SIZES, max_size=3).map(tuple),
    ),
)
BEGINNINGS = st.sampled_from([b"", b"PK\x03\x04", b"PAR1", b"\x80\x04", b"\x93NUMPY"])
HOSTILE = [
    "a\nb",
    "\x1b[31mred",
    "[/red]",
    "[bold",
    "%s{0}",
    "caf\u00e9",
    "a" * 200,
    "\u202eltr",
    "'quote\"",
    "-h",
    " ",
    "\udcff",
]


@thousand("bytes")
@given(
    data=CLAIMS | st.builds(bytes.__add__, BEGINNINGS, st.binary(max_size=99)),
    name=st.sampled_from(["p", *HOSTILE]),
    ending=st.sampled_from([*ENDINGS, ".NPZ", ".pt", "", ".", "/index.json"]),
    verb=VERBS,
)
def test_bytes_under_any_name(data, name, ending, verb):
    files = {f"{name}{ending}": data}
    survives(files, verb, f"{name}{ending}".removesuffix("/index.json"))


HUGE = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-30, 1e30, 1e154, 1e308, -1e308, np.nan, np.inf]
CHANGES = {
    "value": lambda a, v: np.where(np.arange(a.size).reshape(a.shape) == 1, v, a),
    "fill": lambda a, v: np.full(a.shape, v),
    "mirror": lambda a, v: np.where(np.arange(a.size).reshape(a.shape) % 2, v, -v),
    "scale": lambda a, v: np.asarray(a, float) * v,
    "single": lambda a, _: a.astype(np.float32),
    "whole": lambda a, _: a.astype(np.int64),
    "complex": lambda a, _: a.astype(complex),
    "text": lambda a, _: a.astype(str),
    "bytes": lambda a, _: a.astype("S4"),
    "objects": lambda a, _: np.array([{1: 2}] * len(a), dtype=object),
    "dates": lambda a, _: np.zeros(a.shape, "M8[D]"),
    "record": lambda a, _: np.zeros(a.shape, [("a", "f4"), ("b", "i1")]),
    "turn": lambda a, _: a.T,
    "wrap": lambda a, _: a[None],
    "column": lambda a, _: a[..., None],
    "flat": lambda a, _: a.ravel(),
    "empty": lambda a, _: a[:0],
    "first": lambda a, _: a[:1],
    "scalar": lambda a, _: a.ravel()[0],
    "flip": lambda a, _: np.flip(a),
}
# The arrays whose items lie on the second axis.
DRAWN = ("probs", "mean", "var", "select/gmm")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)
HEADERS = st.dictionaries(
    st.sampled_from([field.name for field in fields(Header)] + ["shapes", "else"]),
    JSON | st.sampled_from([*HOSTILE[:6], "ssn", "embedding", 0.1, 2]),
    max_size=3,
)


@st.composite
def changed(draw, arrays):
    """Valid arrays of which a few were changed, taken out, cut short or renamed."""
    held = {name: np.asarray(array) for name, array in arrays.items()}
    rows = draw(st.sampled_from([None, None, None, 1, 2, 3]))
    if rows is not None:
        held = {
            n: a[:, :rows] if n in DRAWN and a.ndim > 1 else a[:rows]
            for n, a in held.items()
        }
    for name in draw(st.lists(st.sampled_from(sorted(held)), max_size=3, unique=True)):
        kind = draw(st.sampled_from(["drop", "rename", *CHANGES]))
        array, value = held.pop(name), draw(st.sampled_from(HUGE))
        if kind == "rename":
            # A zip file cannot hold the last of these names.
            hostile = draw(st.sampled_from(HOSTILE[:-1]))
            held[f"{name.partition('/')[0]}/{hostile}"] = array
        elif kind != "drop":
            with contextlib.suppress(ValueError, TypeError), np.errstate(all="ignore"):
                array = CHANGES[kind](array, value)
            held[name] = array
    return held


def npz(arrays, header):
    whole = io.BytesIO()
    np.savez(whole, header=np.array(header), **arrays)
    return whole.getvalue()


@thousand("arrays")
@given(
    task=st.sampled_from(list(TASKS)[:-1]),
    draws=st.sampled_from([1, 3]),
    header=HEADERS | st.just({"alpha": 0.1}),
    verb=VERBS,
    data=st.data(),
)
def test_valid_arrays_with_odd_changes(task, draws, header, verb, data):
    make, _ = TASKS[task]
    several = task in ("classification", "regression")
    arrays = data.draw(changed(make(draws=draws) if several else make()))
    survives({"p.npz": npz(arrays, json.dumps(header))}, verb, "p.npz")


CELLS = st.sampled_from(
    ["0", "1", "2", "0.5", "nan", "inf", "1e999", "-1e308", "true", "", '"', "a", "\0"]
)
COLUMNS = [
    ["target", "prob"],
    ["target", "prob_0", "prob_1", "group"],
    ["target", "mean", "var", "select/a"],
    ["target", "embedding_0", "embedding_1", "uncertainty/a", "votes_0", "votes_1"],
    ["target", "lower", "upper"],
]


@thousand("tables")
@given(
    names=st.sampled_from(COLUMNS)
    | st.lists(st.sampled_from([n for c in COLUMNS for n in c] + HOSTILE), max_size=5),
    rows=st.lists(st.lists(CELLS, min_size=2, max_size=6), max_size=4),
    square=st.booleans(),
    header=st.none() | HEADERS | JSON,
    mark=st.sampled_from([",", ";", "\t", ",,"]),
    verb=VERBS,
)
def test_tables_of_anything(names, rows, square, header, mark, verb):
    if square:
        rows = [(row * 6)[: len(names)] for row in rows]
        mark = ","
    text = "\n".join(mark.join(row) for row in (names, *rows))
    files = {"p.csv": text.encode("utf-8", "surrogateescape")}
    if header is not None:
        files["p.csv.json"] = json.dumps(header).encode()
    survives(files, verb, "p.csv")


ENTRY = {"item": "case 0", "file": "0.npz"}
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        "item": JSON | st.sampled_from(["case 0", "case 1"]),
        "file": JSON
        | st.sampled_from(["0.npz", "1.npz", "../0.npz", "/0.npz", "a\0.npz", "."]),
        "group": JSON | st.sampled_from(HOSTILE),
        "shifted": JSON,
        "shapes": JSON | st.just({"raters": [2, 4, 5]}),
    },
)
INDICES = st.one_of(
    JSON,
    st.builds(
        lambda header, items: {"header": header, "items": items},
        JSON | HEADERS,
        JSON | st.lists(ENTRIES | st.just(ENTRY), max_size=3),
    ),
    st.just({"header": {"ignore": 255}, "items": [ENTRY]}),
    st.builds(
        lambda header: {"header": header | {"ignore": 255}, "items": [ENTRY]}, HEADERS
    ),
)


@thousand("folders")
@given(index=INDICES, verb=VERBS, data=st.data())
def test_folders_of_anything(index, verb, data):
    maps = made.maps()
    names = ("mean_probs", "expected_entropy", "draw_labels", "raters")
    arrays = data.draw(changed({name: getattr(maps, name) for name in names}))
    files = {
        "p/index.json": json.dumps(index).encode(),
        "p/0.npz": npz(arrays, "{}"),
        "p/1.npz": npz({name: getattr(maps, name) for name in names}, "{}"),
    }
    survives(files, verb)


def written(folder, name, arrays, **header):
    return write(folder / name, arrays, header=header)


def test_uncertainties_that_differ_by_rounding_alone_are_scored(tmp_path):
    prob = np.where(np.arange(8) == 3, 0.5 + 1e-8, 0.5)
    path = written(tmp_path, "p.npz", {"target": np.arange(8) % 2, "prob": prob})
    assert run(["score", path, "--resamples", 0])[::2] == (0, "")


def test_an_infinite_conformal_offset_is_scored_without_an_interval(tmp_path):
    arrays = {"target": np.arange(6.0), "mean": np.zeros(6), "var": np.ones(6)}
    path = written(tmp_path, "p.npz", arrays)
    few = {name: array[:3] for name, array in arrays.items()}
    val = written(tmp_path, "val.npz", few)
    code, out, err = run(["score", path, "--val", val, "--resamples", 9, "--json"])
    assert (code, err) == (0, "")
    rows = json.loads(out)["files"][0]["scores"]
    (length,) = [
        row
        for row in rows
        if (row["score"], row["settings"])
        == ("interval_length", {"interval": "conformal"})
    ]
    assert (length["value"], length["low"]) == (None, None)


def test_a_group_that_no_drawn_cluster_holds_is_scored(tmp_path):
    cluster = np.arange(40) // 2
    arrays = {
        "target": cluster % 2,
        "prob": np.linspace(0.1, 0.9, 40),
        "cluster": cluster,
        "group": np.where(np.arange(40) < 1, "rare", "common"),
    }
    path = written(tmp_path, "p.npz", arrays)
    assert run(["score", path, "--by-group", "--resamples", 30])[::2] == (0, "")


def test_a_number_too_large_to_be_squared_is_named(tmp_path):
    arrays = {"target": [1.0, 2.0, 1e200], "mean": [1.0, 2.0, 3.0]}
    code, _, err = run(["score", written(tmp_path, "p.npz", arrays)])
    assert code == 2
    assert "array 'target' must stay within 1e+70" in err
    assert "position (2,) is 1e+200" in err


def test_a_variance_of_zero_leaves_the_density_out_with_a_note(tmp_path):
    arrays = {"target": [1.0, 2.0], "mean": [1.0, 2.5], "var": [1.0, 0.0]}
    path = written(tmp_path, "p.npz", arrays)
    code, out, _ = run(["score", path, "--resamples", 0, "--json"])
    assert code == 0
    (scored,) = json.loads(out)["files"]
    assert "gaussian_nll" not in {row["score"] for row in scored["scores"]}
    assert any("variance is 0" in note for note in scored["notes"])


def test_validation_maps_of_another_kind_are_refused(tmp_path):
    test = written(tmp_path, "test", made.segmentation(draws=2), ignore=255)
    val = written(tmp_path, "val", made.segmentation(draws=1), ignore=255)
    code, _, err = run(["score", test, "--val", val, "--resamples", 0])
    assert code == 2
    assert "val must hold the same kind of maps" in err


def test_a_terminal_without_arrows_still_shows_the_table(tmp_path):
    path = written(tmp_path, "p.npz", {"target": [0, 1], "prob": [0.1, 0.8]})
    done = subprocess.run(
        [sys.executable, "-m", "qualms", "score", path, "--resamples", "0"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "? Accuracy" in done.stdout


def test_one_item_without_a_neighbour_is_refused(tmp_path):
    arrays = made.embedding() | {"upstream": np.arange(made.N) > 0}
    code, _, err = run(["score", written(tmp_path, "p.npz", arrays)])
    assert code == 2
    assert "at least two items of a known class" in err


PATHS = {
    "missing": lambda _: None,
    "empty file": lambda path: path.touch(),
    "folder": lambda path: path.mkdir(),
    "dangling link": lambda path: path.symlink_to("nowhere"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "pipe": lambda path: os.mkfifo(path),
    "no permission": lambda path: path.touch(mode=0),
}


@pytest.mark.parametrize("ending", [*ENDINGS, ""])
@pytest.mark.parametrize("kind", PATHS)
def test_a_path_without_predictions_is_refused(tmp_path, kind, ending):
    path = tmp_path / f"p{ending}"
    PATHS[kind](path)
    code, out, err = run(["check", path])
    scored_or_refused(code, out, err)
    assert code == 2
    assert str(path) in err


def few():
    """A dozen of the files above, chosen once: what to write, what to read, code."""
    yield valid("classification", ".npz"), "p.npz", 0
    yield valid("segmentation", ""), "p", 0
    for ending, task in {ending: task for task, ending in CARRIED}.items():
        files = dict(valid(task, ending))
        name = max(files, key=len)
        files[name] = files[name][: len(files[name]) // 2]
        yield files, f"p{ending}", 2
    yield {"p.npz": b"PK\x05\x06" + bytes(18)}, "p.npz", 2
    yield {"p.npz": lying_npz("<f8", (2**40,))}, "p.npz", 2
    yield {"p.npz": npz({"target": np.array([{}])}, "{}")}, "p.npz", 2
    yield {"\x1b[31m\n.csv": b"target,prob\n0,nan\n"}, "\x1b[31m\n.csv", 2
    yield {"p.safetensors": (2**63).to_bytes(8, "little")}, "p.safetensors", 2


def alone(path):
    return subprocess.run(
        [sys.executable, "-m", "qualms", "check", path], capture_output=True, text=True
    )


def test_a_dozen_in_processes_of_their_own(tmp_path):
    chosen = list(few())
    assert len(chosen) == 12
    paths = [
        laid(tmp_path / str(number), files, name)
        for number, (files, name, _) in enumerate(chosen)
    ]
    with ThreadPoolExecutor(2) as pool:
        for (_, _, expected), done in zip(chosen, pool.map(alone, paths), strict=True):
            assert done.returncode == expected, (done.args, done.stderr)
            scored_or_refused(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("array", ["target", "mean", "lower", "upper"])
@pytest.mark.parametrize("large", [1e60, 1e90])
def test_numbers_whose_powers_overflow_are_judged_or_named(tmp_path, array, large):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=40)
    arrays = {"target": mean + 0.1, "mean": mean, "lower": mean - 1, "upper": mean + 1}
    arrays[array] = np.where(np.arange(40) < 4, large, arrays[array])
    path = tmp_path / "p.npz"
    write(path, arrays, header={"alpha": 0.1})
    for words in (["score", path], ["refer", path, "--budget", 0.2]):
        code, _, err = run(words)
        if large == 1e90:
            assert (code, "must stay within 1e+70" in err) == (2, True)
        else:
            assert (code, err) == (0, "")


def test_messages_of_functions_are_those_of_the_command_line():
    with pytest.raises(LookupError) as raised:
        qualms.run("\x1b[2J" + "x" * 100_000)
    (message,) = raised.value.args
    assert len(message) < 5_000
    assert message.isprintable()


def test_a_pipe_in_place_of_results_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "results.csv")
    code, _, err = run(["report", tmp_path / "results.csv", "--out", tmp_path / "site"])
    assert (code, "must be a file, got a pipe" in err) == (2, True)


def test_a_message_of_a_hundred_thousand_characters_is_cut(tmp_path):
    code, _, err = run(["list", "x" * 100_000])
    assert code == 2
    assert err.startswith("qualms: no shelf 'xxx")
    assert err.endswith(
        "benchmarks, variants, configs, networks, scores, readers, corruptions.\n"
    )
    assert len(err) < 5_000
