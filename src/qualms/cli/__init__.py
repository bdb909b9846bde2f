"""The command line: one file per verb, heavy imports inside the verbs."""

import io
import os
import sys

import typer

from qualms.cli._once import OnceCommand
from qualms.cli.check import check
from qualms.cli.convert import convert
from qualms.cli.docs import docs
from qualms.cli.gc import gc
from qualms.cli.list import list_parts
from qualms.cli.new import new
from qualms.cli.predict import predict
from qualms.cli.prepare import prepare
from qualms.cli.refer import refer
from qualms.cli.report import report
from qualms.cli.run import run
from qualms.cli.runs import runs
from qualms.cli.score import score
from qualms.cli.tune import tune
from qualms.wording import message_line

app = typer.Typer(
    name="qualms",
    help="Does a vision model know when it does not know, and does it survive a shift?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command(cls=OnceCommand)(score)
app.command(cls=OnceCommand)(refer)
app.command(cls=OnceCommand)(check)
app.command(cls=OnceCommand)(convert)
app.command(cls=OnceCommand)(predict)
app.command(cls=OnceCommand)(run)
app.command(cls=OnceCommand)(report)
app.command(cls=OnceCommand)(runs)
app.command(cls=OnceCommand)(gc)
app.command(cls=OnceCommand)(tune)
app.command(cls=OnceCommand)(prepare)
app.command("list", cls=OnceCommand)(list_parts)
app.command(cls=OnceCommand)(new)
app.command(cls=OnceCommand)(docs)


@app.callback(invoke_without_command=True)
def _root(
    version: bool = typer.Option(False, "--version", help="Print the version."),
) -> None:
    if version:
        from qualms import __version__

        typer.echo(__version__)
        raise typer.Exit


def main() -> None:
    """Run the command line; a user's mistake ends in one sentence and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without arrows shows a question mark instead.
            stream.reconfigure(errors="replace")
    try:
        # Also for `python -m qualms`, so that completion is installed for the command.
        app(prog_name="qualms")
    except Exception as error:
        if os.environ.get("QUALMS_DEBUG") or not (sentence := _sentence(error)):
            raise
        typer.echo(f"qualms: {sentence}", err=True)
        sys.exit(2)


def _sentence(error: Exception) -> str:
    """Return the message for the user; '' for a fault of qualms itself."""
    from qualms.shelf import outside_error

    return message_line(outside_error(error) or _own_words(error))


def _own_words(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return (
            f"needs more memory than there is ({error}); give fewer items at a time, or"
            " fewer draws of each"
        )
    if not isinstance(error, ValueError | LookupError | OSError):
        return ""
    # KeyError quotes its argument; the other errors already speak.
    text = str(error.args[0]) if isinstance(error, KeyError) else str(error)
    return text or type(error).__name__
