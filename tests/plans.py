"""Parts of declared plans, and the runs of their lines."""

from dataclasses import replace


def part_of(plan, *, variants=None, rows=None, **changes):
    """The plan with these variants and rows alone, by their names."""
    if variants is not None:
        changes["variants"] = tuple(plan.variant(name) for name in variants)
    if rows is not None:
        changes["rows"] = tuple(plan.row(name) for name in rows)
    return replace(plan, **changes)


def line_of(plan, variant, row, **at):
    """The line of a row on a variant at these settings."""
    lines = part_of(plan, variants=(variant,), rows=(row,)).lines
    return next(line for line in lines if line.at == at)


def run_of(plan, variant, row, seed, **at):
    """The training behind a line with this seed."""
    line = line_of(plan, variant, row, **at)
    return next(run for run in line.runs if run.seed == seed)
