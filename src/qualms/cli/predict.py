"""`qualms predict`: predictions of a trained network for a user's own pictures."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from qualms.cli._complete import complete_posthoc
from qualms.cli._include import Include
from qualms.progress import showing
from qualms.shelf import traits
from qualms.wording import plural

if TYPE_CHECKING:
    from qualms.trained import PicturePredictions


def predict(
    network: Annotated[
        str,
        typer.Argument(
            help="timm:resnet50 or any other, open_clip:ViT-B-32, or a file .onnx."
        ),
    ],
    source: Annotated[
        Path,
        typer.Option(
            "--from", help="Class folders, a folder of images, or a table in CSV."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Write the predictions here.")],
    method: Annotated[
        str,
        typer.Option(
            help="plain, mc_dropout, laplace, tta, temperature ...",
            autocompletion=complete_posthoc,
        ),
    ] = "plain",
    option: Annotated[
        list[str] | None,
        typer.Option("-o", help="An option of the method, such as draws=30."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="A file of weights, package:NAME, or a name of open_clip's; timm's own"
            " by default."
        ),
    ] = None,
    classes: Annotated[
        Path | None,
        typer.Option(help="The class of each output: a line for each, or JSON."),
    ] = None,
    fit: Annotated[
        Path | None, typer.Option(help="Training items, for methods such as laplace.")
    ] = None,
    val: Annotated[
        Path | None,
        typer.Option(help="Held-out items, for methods such as temperature."),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="The split to predict, where items state theirs (test)."),
    ] = None,
    task: Annotated[
        str, typer.Option(help="classification, regression or embedding.")
    ] = "classification",
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    batch: Annotated[int, typer.Option(min=1, help="Items in a batch.")] = 32,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes that read pictures.")
    ] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")] = "auto",
    mean: Annotated[
        str,
        typer.Option(help="A file .onnx: mean of the colours from 0 to 1, R,G,B."),
    ] = "",
    std: Annotated[
        str, typer.Option(help="A file .onnx: deviation of the colours, R,G,B.")
    ] = "",
    outputs: Annotated[
        str | None, typer.Option(help="A file .onnx: logits or probabilities.")
    ] = None,
    views: Annotated[
        bool,
        typer.Option(
            "--views/--no-views",
            help="Embeddings: see pictures mirrored and cropped as well, which takes"
            " four times as long.",
        ),
    ] = True,
    thumbnails: Annotated[
        int, typer.Option(min=0, help="Keep pictures of this side, e.g. 48, for pages.")
    ] = 0,
    include: Include = None,  # noqa: ARG001 - its callback takes it
) -> None:
    """Predict or embed your own pictures with a trained network.

    Pictures get the size and the colours that the network was trained with. The class
    folders must fit its outputs; --classes says which output is which. Embeddings are
    of any classes (`qualms docs embeddings`). In Python, `qualms.predict` does the same
    for any torch module.
    """
    from qualms.launch import check_installed, check_options, options_of, parse_options
    from qualms.shelf import find

    check_installed()
    options = parse_options(option or [])
    if method != "plain":
        options = check_options(
            f"method {method!r}", options, options_of(find("methods", method))
        )
    from qualms.trained import PictureRequest, predict_pictures

    request = PictureRequest(
        network=network,
        source=source,
        fit=fit,
        val=val,
        weights=weights or "pretrained",
        classes=classes,
        split=split,
        task=task,
        batch=batch,
        workers=workers,
        device=device,
        mean=_numbers("--mean", mean),
        deviation=_numbers("--std", std),
        outputs=outputs,
        views=views,
        thumbnails=thumbnails,
    )
    with showing(network) as advance:
        result = predict_pictures(
            request,
            method=method,
            options=options,
            seed=seed,
            out=out,
            progress=advance,
        )
    _report(result, out, method)


def _numbers(name: str, text: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise ValueError(
            f"{name} must be numbers separated by commas, such as 0.5,0.5,0.5, got"
            f" {text!r}"
        ) from None


def _report(result: "PicturePredictions", out: Path, method: str) -> None:
    predictions: Any = result.predictions
    items = f"{predictions.n} {plural(predictions.n, 'item')}"
    draws = f"{predictions.draws} {plural(predictions.draws, 'draw')}"
    classes = f", {predictions.classes} classes" if predictions.classes else ""
    typer.echo(f"{out}: {items}, {draws} by {method}{classes}")
    uncertainties = predictions.named("uncertainty")
    if "vectors" in traits(predictions.task):
        typer.echo(f"  uncertainties: {', '.join(uncertainties)}")
    for note in result.notes:
        typer.echo(f"  note: {note}")
    if predictions.get("target") is None:
        typer.echo("  note: the items have no targets, so they cannot be scored")
    else:
        typer.echo(f"score them with: qualms score {out}")
