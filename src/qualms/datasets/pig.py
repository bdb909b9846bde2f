"""Pig: tails of pigs, which may be injured.

Images of European farms, with the votes and folds of DCIC (Schmarje et al., 2022), as
used by URL (Kirchhof et al., 2023, arXiv:2307.03810).
"""

from pathlib import Path

from qualms.datasets._recipe import Recipe
from qualms.datasets._retrieval.pictures import CROP_SHARE, checked_fit
from qualms.datasets._retrieval.votes import VotedSet, votes_card, votes_recipe

FOLDER = "Pig"
CARD = votes_card(
    "Pig",
    folder=FOLDER,
    licence="see the publisher (Zenodo record 7152309)",
)
IMAGES = 10_237


def pig(root: str | Path, *, side: int = 224, crop_share: float = CROP_SHARE) -> Recipe:
    """Read images (side, side, 3) with `votes`. Splits train, val, test.

    Args:
        root: the publisher's files, see the card.
        side: height and width of pictures.
        crop_share: the part of the short side that the centre crop keeps; 0.875 is that
            of the released code.
    """
    voted_set = VotedSet("pig", FOLDER, IMAGES, CARD)
    return votes_recipe(voted_set, Path(root), checked_fit(side, crop_share))
