"""Turkey: heads and plumage of turkeys, which may be injured.

Volkmann et al. (2021, 2022), with the votes and folds of DCIC (Schmarje et al.,
2022), as used by URL (Kirchhof et al., 2023, arXiv:2307.03810).
"""

from pathlib import Path

from qualms.datasets._recipe import Recipe
from qualms.datasets._retrieval.pictures import CROP_SHARE, checked_fit
from qualms.datasets._retrieval.votes import VotedSet, votes_card, votes_recipe

FOLDER = "Turkey"
CARD = votes_card(
    "Turkey",
    folder=FOLDER,
    licence="see the publisher (Zenodo record 7152309)",
    citation=(
        "Volkmann et al. Learn to train: improving training data for a neural network "
        "to detect pecking injuries in turkeys. Animals 11, 2021. Volkmann et al. "
        "Keypoint detection for injury identification during turkey husbandry using "
        "neural networks. Sensors 22, 2022."
    ),
)
IMAGES = 8_040


def turkey(
    root: str | Path, *, side: int = 224, crop_share: float = CROP_SHARE
) -> Recipe:
    """Read images (side, side, 3) with `votes`. Splits train, val, test.

    Args:
        root: the publisher's files, see the card.
        side: height and width of pictures.
        crop_share: the part of the short side that the centre crop keeps; 0.875 is that
            of the released code.
    """
    voted_set = VotedSet("turkey", FOLDER, IMAGES, CARD)
    return votes_recipe(voted_set, Path(root), checked_fit(side, crop_share))
