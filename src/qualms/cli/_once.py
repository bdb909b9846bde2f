"""Commands whose options are given once, except those that say otherwise."""

from typing import Any

from typer.core import TyperCommand, TyperOption


class OnceCommand(TyperCommand):
    """A command that refuses an option given twice, of which one would be lost."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a user; raise if an option is there twice."""
        if not ctx.resilient_parsing:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
            for option in given:
                if not isinstance(option, TyperOption) or option.is_flag:
                    continue
                if not option.multiple and given.count(option) > 1:
                    raise ValueError(
                        f"{option.opts[0]} must be given once, got it"
                        f" {given.count(option)} times; leave out all but one"
                    )
        return super().parse_args(ctx, args)
