"""Print the sizes of the code: a report to look at, not a limit.

Lines of code and docstrings, files, records, the largest modules and functions, public
modules that only their own package imports, functions that are called once, parameters
that are only handed on, files that name a task, options that commands state, and what
a command passes through.

    python bench/sizes.py
    python bench/sizes.py --passed "score p.csv" --passed "run retina/country ..."
"""

import argparse
import ast
import inspect
import re
import runpy
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "qualms"
LARGEST = 8
"""Modules and functions that are listed."""
TASKS = {"classification", "regression", "segmentation", "embedding", "multilabel"}
HOMES = ("tasks", "benchmarks", "datasets")
"""Packages that may name a task."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--passed", action="append", default=[])
    commands = arguments.parse_args().passed
    if commands:
        for command in commands:
            files, functions = passed(command)
            print(f"{files:5} files {functions:6} functions  qualms {command}")
        return
    count_all()


def count_all() -> None:
    """Print the counts, and the longest modules and functions."""
    modules = {module_name(path): path for path in sorted(SRC.rglob("*.py"))}
    texts = {name: path.read_text("utf-8") for name, path in modules.items()}
    trees = {name: ast.parse(text) for name, text in texts.items()}
    lines = {name: text.count("\n") for name, text in texts.items()}
    documented = sum(docstring_lines(tree) for tree in trees.values())
    print(f"files              {len(modules):7,}")
    print(f"lines              {sum(lines.values()):7,}")
    print(f"  in docstrings    {documented:7,}")
    print(f"records            {sum(map(records, trees.values())):7,}")
    at_home = sorted(used_at_home(trees))
    public = [name for name in trees if is_public(name)]
    print(f"public submodules  {len(public):7,}")
    print(f"  used at home only{len(at_home):7,}  {', '.join(at_home)}")
    count_parts(texts, trees)
    print("\nlongest modules")
    for name in sorted(lines, key=lines.__getitem__, reverse=True)[:LARGEST]:
        print(f"  {lines[name]:5}  {name}")
    print("\nlongest function bodies")
    bodies = sorted(body_sizes(trees), reverse=True)
    for size, name in bodies[:LARGEST]:
        print(f"  {size:5}  {name}")


def count_parts(texts: dict[str, str], trees: dict[str, ast.Module]) -> None:
    """Print counts of functions, parameters, names of tasks and options."""
    once = called_once(trees)
    functions = sum(1 for tree in trees.values() for _ in functions_of(tree))
    print(f"functions          {functions:7,}")
    print(f"  referred to once {len(once):7,}")
    print(f"    of 1 or 2 lines{sum(size <= 2 for size in once.values()):7,}")
    handed, every = handed_on(trees)
    print(f"parameters         {every:7,}")
    print(f"  only handed on   {handed:7,}")
    naming = sorted(filter(None, (task_named(*each) for each in trees.items())))
    print(f"files naming a task{len(naming):7,}  in {packages(naming)}")
    stated = sum(len(options(text)) for text in texts.values())
    print(f"options of commands{stated:7,}")


def module_name(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def docstring_lines(tree: ast.Module) -> int:
    """Count the lines of docstrings and of strings below fields."""
    return sum(
        node.end_lineno - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def records(tree: ast.Module) -> int:
    """Count dataclasses and named tuples."""
    return sum(
        (
            isinstance(node, ast.ClassDef)
            and "dataclass(" in "".join(map(ast.unparse, node.decorator_list))
        )
        or (
            isinstance(node, ast.ClassDef)
            and "NamedTuple" in "".join(map(ast.unparse, node.bases))
        )
        for node in ast.walk(tree)
    )


def is_public(name: str) -> bool:
    """Whether a module below a package has no leading underscore anywhere."""
    return "." in name and not any(part.startswith("_") for part in name.split("."))


def used_at_home(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Yield public submodules that only modules of their own package import.

    Parts of shelves are found by their names instead.
    """
    importers = defaultdict(set)
    for importer, tree in trees.items():
        for target in imports(tree):
            importers[target].add(importer)
    for name in filter(is_public, trees):
        package = name.rpartition(".")[0]
        users = importers[name]
        if users and all(f"{user}.".startswith(f"{package}.") for user in users):
            yield name


def imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module = node.module.removeprefix("qualms").removeprefix(".")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def body_sizes(trees: dict[str, ast.Module]) -> Iterator[tuple[int, str]]:
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                size = node.end_lineno - node.body[0].lineno + 1
                yield size, f"{module}.{node.name}"


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def called_once(trees: dict[str, ast.Module]) -> dict[str, int]:
    """Return the lines of the bodies of functions whose name is read once in all."""
    read: Counter[str] = Counter()
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                read[node.id] += 1
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                read[node.attr] += 1
    return {
        f"{module}.{node.name}": body_lines(node)
        for module, tree in trees.items()
        for node in functions_of(tree)
        if read[node.name] == 1
    }


def body_lines(node: ast.FunctionDef) -> int:
    """Return the lines of a function below its docstring."""
    first = node.body[0]
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    code = node.body[1:] if documented else node.body
    return code[-1].end_lineno - code[0].lineno + 1 if code else 0


def handed_on(trees: dict[str, ast.Module]) -> tuple[int, int]:
    """Count parameters that are read only as an argument of a call, and all."""
    handed = every = 0
    for tree in trees.values():
        for node in functions_of(tree):
            arguments = {
                id(value)
                for call in ast.walk(node)
                if isinstance(call, ast.Call)
                for value in (*call.args, *(word.value for word in call.keywords))
            }
            reads = defaultdict(list)
            for name in ast.walk(node):
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Load):
                    reads[name.id].append(id(name) in arguments)
            spec = node.args
            for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
                if parameter.arg not in ("self", "cls"):
                    every += 1
                    handed += reads[parameter.arg] == [True]
    return handed, every


def task_named(module: str, tree: ast.Module) -> str:
    """Return the module if it holds the name of a task as a text; else ''."""
    if module.split(".")[0] in HOMES:
        return ""
    words = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return module if words & TASKS else ""


def packages(modules: list[str]) -> str:
    counts = Counter(module.split(".")[0] for module in modules)
    return ", ".join(f"{package} {count}" for package, count in counts.most_common())


def options(text: str) -> list[str]:
    return re.findall(r"typer\.(?:Option|Argument)\(", text)


def passed(command: str) -> tuple[int, int]:
    """Run a command in this process; count files and functions that it enters."""
    entered = set()

    def enter(frame, event, _):
        if event == "call":
            code = frame.f_code
            ours = code.co_filename.startswith(str(SRC))
            # Bodies of classes run as well when a module is loaded.
            if ours and code.co_name[0] != "<" and code.co_flags & inspect.CO_OPTIMIZED:
                entered.add((code.co_filename, code.co_qualname))

    sys.argv = ["qualms", *shlex.split(command)]
    sys.setprofile(enter)
    try:
        runpy.run_module("qualms", run_name="__main__")
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    return len({file for file, _ in entered}), len(entered)


if __name__ == "__main__":
    main()
