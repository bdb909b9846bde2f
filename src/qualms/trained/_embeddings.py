"""Uncertainties of embeddings that need no training: lengths, mirrored images, crops.

The crop test is that of URL (Kirchhof et al., 2023, arXiv:2307.03810): the centre of
each image is embedded in full size, and its uncertainty kept.
"""

from collections.abc import Callable, Mapping, Sequence

from torch import Tensor

from qualms.methods import with_untrained
from qualms.training.predict import centre_crops, crop_shares

Embedded = Mapping[str, Tensor]
"""Arrays of the predictions schema, by name."""
_IMAGE = 4
"""Axes of a batch of images."""
_OWN, _CROPPED = "uncertainty/", "uncertainty_cropped/"


def embedded_views(
    embed: Callable[[Tensor], Embedded],
    x: Tensor,
    items: Sequence[str],
    *,
    views: bool,
) -> dict[str, Tensor]:
    """Return embeddings with their uncertainties, the length of the embedding first.

    Args:
        embed: From inputs to what a method predicts of them.
        x: (B, ...) inputs.
        items: Names of the items, which decide how much of each is cropped.
        views: Whether images are also embedded mirrored and cropped: `uncertainty/
            flips` is one minus the cosine of an image's embedding and its mirror's.
            Inputs that are no images have no views.
    """
    views = views and x.ndim == _IMAGE
    arrays = with_untrained(embed, x, mirrored=views)
    if not views:
        return arrays
    crops = centre_crops(x, crop_shares(items))
    of_crops = with_untrained(embed, crops, mirrored=True)
    cropped = {
        name.replace(_OWN, _CROPPED): values
        for name, values in of_crops.items()
        if name.startswith(_OWN)
    }
    return arrays | cropped
