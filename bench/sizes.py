"""Print the sizes of the code: a report to look at, not a limit.

Lines of code and docstrings, files, records, the largest modules and functions, and
public modules that only their own package imports.

    python bench/sizes.py
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "qualms"
LARGEST = 8
"""Modules and functions that are listed."""


def main() -> None:
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
    print("\nlongest modules")
    for name in sorted(lines, key=lines.__getitem__, reverse=True)[:LARGEST]:
        print(f"  {lines[name]:5}  {name}")
    print("\nlongest function bodies")
    bodies = sorted(body_sizes(trees), reverse=True)
    for size, name in bodies[:LARGEST]:
        print(f"  {size:5}  {name}")


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


if __name__ == "__main__":
    main()
