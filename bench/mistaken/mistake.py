"""A mistake of a user, and how the package answers it."""

import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

import qualms
from qualms.cli import main

Kind = Literal["refused", "said", "accepted"]
Content = str | bytes | Mapping[str, Any] | Callable[[Path], object]
"""What a file holds: text, bytes, arrays of an .npz, or a function that writes it."""

LONGEST = 300
"""Most characters of an answer in the table."""
SENTENCE = re.compile(r"(?<=[\w)'\"\]])[.?] (?=[A-Z])")
"""The end of a sentence, before the next one."""


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """Something that a user gets wrong."""

    what: str
    do: str | Callable[[], object]
    """A command without `qualms`, or a function."""
    kind: Kind
    """Whether it must be refused, said in a note, or accepted as harmless."""
    says: str
    """Words that the answer must have."""
    files: Mapping[str, Content] = field(default_factory=dict)
    """What lies in the folder of the user, by name."""
    status: int | None = None
    """Exit status of the command; 2 where it is refused and 0 elsewhere by default."""
    typed: bool = False
    """Whether the command itself is the mistake, so that the page shows it."""

    @property
    def expected_status(self) -> int:
        """Return the exit status that fits."""
        if self.status is not None:
            return self.status
        return 2 if self.kind == "refused" else 0


class Answer(NamedTuple):
    """What a user sees."""

    status: int
    """The exit status of a command; 2 for an error in Python, as the command has it."""
    text: str
    error: str = ""
    """Class of an error that is no sentence for users, such as TypeError."""

    def sentence(self, words: str) -> str:
        """Return the part of the text that holds `words`, short enough for a table."""
        notes = re.split(r"\n(?=\S)|\n\s*(?=note:)", self.text)
        parts = [" ".join(note.split()) for note in notes]
        found = next((part for part in parts if words in part), " ".join(parts))
        if found.find(words) > LONGEST:
            found = f"... {found[found.index(words) :]}"
        return shortened(found.removeprefix("qualms: ").removeprefix("note: "))


def shortened(text: str) -> str:
    """Return the first sentences of a text that fit."""
    text = text.strip()
    if len(text) <= LONGEST:
        return text
    ends = [m.start() + 1 for m in SENTENCE.finditer(text) if m.start() < LONGEST]
    return text[: ends[-1]] if ends else f"{text[: text.rindex(' ', 0, LONGEST)]} ..."


def answer_to(mistake: Mistake) -> Answer:
    """Make the mistake in a folder of its own, and return the answer."""
    with _folder() as folder:
        for name, content in mistake.files.items():
            place(folder / name, content)
        with _clean_state():
            if isinstance(mistake.do, str):
                return _command(shlex.split(mistake.do))
            return _call(mistake.do)


def place(path: Path, content: Content) -> None:
    """Write a file of a user."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        path.write_text(content, encoding="utf-8")
    elif isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, Mapping):
        arrays = dict(content)
        if isinstance(arrays.get("header"), dict):
            arrays["header"] = json.dumps(arrays["header"])
        np.savez(path, **arrays)
    else:
        content(path)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """Work in an empty folder, whose datasets and environment are its own."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        os.chdir(folder)
        try:
            yield folder
        finally:
            os.chdir(before)


@contextlib.contextmanager
def _clean_state() -> Iterator[None]:
    """Leave the environment, imported files and search path as they were."""
    variables, modules, path = dict(os.environ), set(sys.modules), list(sys.path)
    here = str(Path.cwd())
    os.environ.update(QUALMS_CACHE="cache", COLUMNS="2000", CUDA_VISIBLE_DEVICES="")
    os.environ.pop("QUALMS_INCLUDE", None)
    os.environ.pop("QUALMS_DEBUG", None)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(variables)
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None) or ""
            if file.startswith(here):
                del sys.modules[name]


def _command(words: list[str]) -> Answer:
    """Run a command in this process."""
    said, refused = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["qualms", *words]
    status: Any = 0
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(refused):
            main()
    except SystemExit as stopped:
        status = stopped.code or 0
    except Exception as error:  # a user would see a traceback
        return Answer(1, str(error), type(error).__name__)
    finally:
        sys.argv = before
    # Of a refused command, what it printed before is not the answer.
    text = refused.getvalue() if status == 2 else said.getvalue() + refused.getvalue()
    return Answer(status, _own_words(text))


def _call(do: Callable[[], object]) -> Answer:
    """Call a function as a user's program does."""
    said = io.StringIO()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                result = do()
        except (ValueError, LookupError, OSError, MemoryError) as error:
            text = error.args[0] if isinstance(error, KeyError) else error
            return Answer(2, _own_words(str(text)))
        except Exception as error:
            *_, last = traceback.extract_tb(error.__traceback__)
            ours = Path(last.filename).is_relative_to(Path(qualms.__file__).parent)
            if ours and (last.line or "").startswith("raise TypeError"):
                return Answer(2, _own_words(str(error)))
            return Answer(2, str(error), type(error).__name__)
    texts = [said.getvalue(), *(str(each.message) for each in warned)]
    texts += _notes(result)
    return Answer(0, _own_words("\n".join(texts)))


def _notes(result: object) -> list[str]:
    """Return what a result says about itself."""
    if isinstance(result, str):
        return [result]
    notes = [*getattr(result, "notes", ()), *getattr(result, "warnings", ())]
    return [" ".join(str(note).split()) for note in notes]


def _own_words(text: str) -> str:
    """Return a text without what the shell library prints before it."""
    text = text.replace(f"{Path.cwd()}/", "").replace(str(Path.cwd()), ".")
    return re.sub(r"^Usage: .*?\n\nError: ", "", text, flags=re.DOTALL)
