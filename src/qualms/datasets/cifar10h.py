"""CIFAR-10H: the test images of CIFAR-10, each classified by about 50 people.

Peterson et al. (2019), with the votes and folds of DCIC (Schmarje et al.,
2022), as used by URL (Kirchhof et al., 2023, arXiv:2307.03810).
"""

from pathlib import Path

from qualms.datasets._recipe import Recipe
from qualms.datasets._retrieval.pictures import CROP_SHARE, checked_fit
from qualms.datasets._retrieval.votes import VotedSet, votes_card, votes_recipe

FOLDER = "CIFAR10H"
CARD = votes_card(
    "CIFAR-10H",
    folder=FOLDER,
    licence="CC BY-NC-SA 4.0 (votes); see the publisher",
    citation=(
        "Peterson, Battleday, Griffiths, Russakovsky. Human uncertainty makes "
        "classification more robust. ICCV 2019."
    ),
)
IMAGES = 10_000


def cifar10h(
    root: str | Path, *, side: int = 224, crop_share: float = CROP_SHARE
) -> Recipe:
    """Read images (side, side, 3) with `votes`. Splits train, val, test.

    Args:
        root: the publisher's files, see the card.
        side: height and width of pictures.
        crop_share: the part of the short side that the centre crop keeps; 0.875 is that
            of the released code.
    """
    voted_set = VotedSet("cifar10h", FOLDER, IMAGES, CARD)
    return votes_recipe(voted_set, Path(root), checked_fit(side, crop_share))
