import numpy as np
import pytest
import torch
from torch.nn import functional

from qualms.training.predict import centre_crops, crop_shares


@pytest.mark.parametrize("size", [(32, 32), (31, 31), (24, 40)])
def test_a_crop_is_what_is_cut_out_and_enlarged(size):
    torch.manual_seed(0)
    x = torch.rand(12, 3, *size)
    share = torch.linspace(0.1, 0.75, 12, dtype=torch.float64)
    found = centre_crops(x, share)
    for image, kept, crop in zip(x, share, found, strict=True):
        side = round(min(size) * float(kept))
        top, left = (round((n - side) / 2) for n in size)
        cut = image[None, :, top : top + side, left : left + side]
        wanted = functional.interpolate(
            cut, size, mode="bilinear", align_corners=False
        )[0]
        torch.testing.assert_close(crop, wanted, rtol=1e-4, atol=1e-5)


def test_shares_follow_from_names_and_are_even():
    names = [f"image {i}" for i in range(4000)]
    share = crop_shares(names).numpy()
    assert share.min() >= 0.1
    assert share.max() <= 0.75
    counts, _ = np.histogram(share, 10, (0.1, 0.75))
    assert counts.min() > 330
    assert crop_shares(names[::-1]).tolist() == share[::-1].tolist()
