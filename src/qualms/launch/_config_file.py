"""Configs in files: the best options of a search, for `qualms run --config FILE`.

name = "country-mc_dropout-in_domain-demo"
benchmark = "retina"
method = "mc_dropout"             # whose runs take the options
selection = "in_domain"           # "" where it fits every selection

[options]                         # as with -o
lr = 0.0571874
"method.rate" = 0.0906861

[search]                          # how they were found; not read
trials = 8
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from qualms.atomic import replacing
from qualms.launch._overrides import with_options
from qualms.study import Benchmark, Config, RunPlan
from qualms.wording import suggest

ENDING = ".toml"
SHARED = ("dataset.", "network.")
"""Prefixes of options that all runs of a plan take: rows share data and network."""
_KINDS: Mapping[str, type] = {
    "name": str,
    "benchmark": str,
    "method": str,
    "selection": str,
    "options": dict,
    "search": dict,
}
_NEEDED = ("name", "benchmark", "method", "options")


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """A config with its name, the benchmark it is for, and how it was found."""

    name: str
    benchmark: str
    method: str
    options: Mapping[str, Any]
    """Written as for `-o`."""
    selection: str = ""
    """The selection by which it was chosen; '' where it fits all."""
    search: Mapping[str, Any] = field(default_factory=dict)
    """Facts about the search that found it, for readers."""

    @property
    def shared(self) -> dict[str, Any]:
        """The options of data and network."""
        return {n: v for n, v in self.options.items() if n.startswith(SHARED)}

    @property
    def config(self) -> Config:
        """The options of training and method, as a benchmark declares them."""
        own = {n: v for n, v in self.options.items() if n not in self.shared}
        return Config(options=own, method=self.method, selection=self.selection)


def is_config_file(name: str) -> bool:
    """Return whether `--config` names a file rather than a config of the benchmark."""
    return name.endswith(ENDING)


def read_config(path: Path) -> ConfigFile:
    """Read a config; raise a sentence where the file does not hold one."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, IsADirectoryError):
        raise ValueError(
            f"there is no file {path}; --config takes a file that ends with {ENDING},"
            " or the name of a config of the benchmark"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"{path} is not TOML: {error}; correct it") from error
    for key, value in content.items():
        if key not in _KINDS:
            raise LookupError(
                f"no key {key!r} in {path}.{suggest(key, _KINDS)} Known:"
                f" {', '.join(_KINDS)}."
            )
        if not isinstance(value, _KINDS[key]):
            words = "a table" if _KINDS[key] is dict else "text in quotes"
            raise ValueError(f"{key!r} in {path} must be {words}, got {value!r}")
    missing = [key for key in _NEEDED if not content.get(key)]
    if missing:
        raise ValueError(f"{path} must state {', '.join(map(repr, missing))}; add it")
    return ConfigFile(**content)


def write_config(config: ConfigFile, path: Path) -> None:
    """Write a config that `read_config` reads."""
    with replacing(path) as temporary:
        temporary.write_text("\n".join(_lines(config)) + "\n", encoding="utf-8")


def with_config(benchmark: Benchmark, file: ConfigFile, path: str) -> Benchmark:
    """Return a benchmark that declares the config of a file under its name."""
    if file.benchmark != benchmark.name:
        raise ValueError(
            f"{path} is a config of {file.benchmark!r}, got benchmark"
            f" {benchmark.name!r}; run {file.benchmark}, or choose another config"
        )
    selections = [each.name for each in benchmark.selections]
    if file.selection and file.selection not in selections:
        raise LookupError(
            f"no selection {file.selection!r} in {benchmark.name}, which {path} states."
            f"{suggest(file.selection, selections)} Known:"
            f" {', '.join(selections) or 'none'}."
        )
    if file.name in benchmark.configs:
        raise ValueError(
            f"{benchmark.name} has a config {file.name!r} of its own; change the name"
            f" in {path}"
        )
    configs = {**benchmark.configs, file.name: file.config}
    return replace(benchmark, configs=configs)


def check_config_options(plan: RunPlan, file: ConfigFile) -> None:
    """Raise unless training and method have the options of a file."""
    rows = tuple(row for row in plan.rows if row.method.name == file.method)
    with_options(replace(plan, rows=rows), file.config.options)


def _lines(config: ConfigFile) -> Iterator[str]:
    for key in ("name", "benchmark", "method", "selection"):
        yield f"{key} = {_toml(getattr(config, key))}"
    for title, table in (("options", config.options), ("search", config.search)):
        if table:
            yield f"\n[{title}]"
            yield from (f"{_key(n)} = {_toml(value)}" for n, value in table.items())


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_key(name)} = {_toml(each)}" for name, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, bool | int | float | str):
        return json.dumps(value)
    raise ValueError(f"an option in a config must be plain data, got {value!r}")


def _key(name: str) -> str:
    """Return a key that TOML reads as one name."""
    return name if name.replace("_", "").isalnum() else json.dumps(name)
