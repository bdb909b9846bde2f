"""Fundus cameras: from the reflectance of a retina to its photograph.

There are two profiles, one per country. Each has a few sites with their own colours and
dust. A photograph has a quality from 0 to 1: a bad one is out of focus, hazy and
unevenly lit, and has reflections at the rim.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from qualms.datasets.fundus._brush import (
    BLOOD,
    STROKE,
    Kind,
    RetinaView,
    paint,
    scatter,
)
from qualms.datasets.fundus._disease import USUAL, Population

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Bytes = NDArray[np.uint8]
Rng = np.random.Generator
Range = tuple[float, float]

REFERENCE = 512
"""Picture size that the values of `compression` refer to."""
HAZE = np.array([0.50, 0.42, 0.34], np.float32)
GLARE = np.array([0.55, 0.62, 0.60], np.float32)


class Profile(NamedTuple):
    """Cameras and people of one country; pairs are the ends of a range unless noted."""

    name: str
    sites: int
    pigment: Range
    """Mean and spread over patients; 0 is fair, 1 dark."""
    field: Range
    """Field of view, relative to 45 degrees."""
    circle: Range
    """Diameter of the round image, relative to the side of the picture."""
    cropped: float
    """Share of photographs whose circle is cut off at the top and bottom."""
    gain: tuple[float, float, float]
    """Brightness of red, green and blue."""
    uneven: float
    """Spread of the gains between sites."""
    gamma: Range
    blur: Range
    """Standard deviation in a good photograph, relative to the circle's radius."""
    falloff: Range
    """Loss of light at the rim."""
    dust: tuple[int, int]
    """Number of specks on the lens of a site."""
    noise: Range
    compression: Range
    """Quality of the JPEG file."""
    specks: Range = (0.008, 0.03)
    """Radius of the dust, relative to that of the circle."""
    opacity: Range = (0.1, 0.35)
    """Density of the dust."""
    disease: Population = USUAL
    """Appearance of disease in the people's eyes."""


UNITED_STATES = Profile(
    name="eyepacs",
    sites=6,
    pigment=(0.35, 0.22),
    field=(0.95, 1.08),
    circle=(0.93, 1.0),
    cropped=0.3,
    gain=(0.92, 0.86, 0.84),
    uneven=0.05,
    gamma=(0.95, 1.15),
    blur=(0.000, 0.004),
    falloff=(0.12, 0.35),
    dust=(0, 3),
    noise=(0.006, 0.014),
    compression=(75, 92),
)
INDIA = Profile(
    name="aptos",
    sites=4,
    pigment=(0.78, 0.16),
    field=(0.78, 1.18),
    circle=(0.98, 1.22),
    cropped=0.5,
    gain=(0.80, 0.98, 0.58),
    uneven=0.09,
    gamma=(0.75, 1.25),
    blur=(0.004, 0.012),
    falloff=(0.25, 0.6),
    dust=(3, 9),
    noise=(0.012, 0.026),
    compression=(45, 80),
)
HOSPITAL = Profile(
    name="hospital",
    sites=5,
    pigment=(0.55, 0.2),
    field=(0.9, 1.1),
    circle=(0.95, 1.1),
    cropped=0.4,
    gain=(0.90, 0.90, 0.78),
    uneven=0.05,
    gamma=(0.9, 1.15),
    blur=(0.000, 0.004),
    falloff=(0.15, 0.4),
    dust=(12, 16),
    noise=(0.008, 0.016),
    compression=(70, 90),
    specks=(0.012, 0.02),
    opacity=(0.6, 0.85),
    disease=Population(mimicked=0.05, ahead=1.0),
)
"""A hospital abroad: the dust on its cameras looks like small lesions."""
TREATED = UNITED_STATES._replace(
    name="treated", disease=Population(treated=0.4, left=(0.0, 0.5))
)
"""The cameras at home, and eyes of which some were treated."""


class CameraFrame(NamedTuple):
    """Positions of the round image and of the retina in a picture, in pixels."""

    view: RetinaView
    middle: Floats
    radius: float
    height: float
    """Half the height of the part that is not cut off."""


class _Site(NamedTuple):
    """The camera of one site."""

    gain: Floats32
    gamma: float
    dust: Floats
    """(n, 10) blobs in a circle of radius 1."""
    tab: float
    """Direction of the small tab at the rim, in radians; nan for none."""


def point_camera(rng: Rng, profile: Profile, *, left: bool, size: int) -> CameraFrame:
    """Point the camera at a random place between macula and disc."""
    radius = 0.5 * size * rng.uniform(*profile.circle)
    cropped = rng.uniform(0.8, 0.95) if rng.random() < profile.cropped else 2.0
    scale = radius / rng.uniform(*profile.field)
    turn = rng.normal(0, 0.05)
    gaze = np.array([rng.normal(0.18, 0.13), rng.normal(0.0, 0.07)])
    mirror = np.array([-1.0 if left else 1.0, 1.0])
    rotation = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    matrix = scale * rotation * mirror
    middle = 0.5 * size + rng.normal(0, 0.008 * size, 2)
    view = RetinaView(matrix, middle - matrix @ gaze, size)
    return CameraFrame(view, middle, radius, cropped * radius)


def expose(
    rng: Rng,
    light: Floats32,
    frame: CameraFrame,
    profile: Profile,
    *,
    site: int,
    quality: float,
) -> Bytes:
    """Take the photograph (size, size, 3) in RGB.

    Args:
        rng: draws what differs between photographs of one camera.
        light: (size, size, 3) reflectance of the retina seen through `frame.view`.
        frame: where the round image lies.
        profile: the cameras of the country.
        site: which of these cameras.
        quality: how good the photograph is, from 0 to 1.
    """
    import cv2

    camera, bad = _site(profile, site), 1.0 - quality
    sigma = frame.radius * (rng.uniform(*profile.blur) + 0.022 * bad**1.5)
    image = light if sigma < 0.2 else cv2.GaussianBlur(light, (0, 0), sigma)
    x, y = _plane(frame)
    image = image * _lamp(rng, x, y, profile, bad)[..., None]
    image = _haze(rng, np.asarray(image, np.float32), x, y, bad)
    if len(camera.dust):
        image *= np.exp(-_dust(frame, camera))[..., None]
    np.clip(image, 0.0, 1.0, out=image)
    image = cv2.pow(image * camera.gain, camera.gamma)
    noise = rng.standard_normal(image.shape, np.float32)
    image += np.float32(rng.uniform(*profile.noise)) * noise
    image *= _aperture(frame, x, y, camera)[..., None]
    pixels = np.rint(255 * image.clip(0.0, 1.0)).astype(np.uint8)
    return _compress(pixels, rng.uniform(*profile.compression))


@cache
def _site(profile: Profile, number: int) -> _Site:
    """Draw the camera of a site; it is the same for all seeds of the dataset."""
    rng = np.random.default_rng([profile.sites, number])
    count = int(rng.integers(profile.dust[0], profile.dust[1] + 1))
    angle, away = rng.uniform(0, 2 * np.pi, count), np.sqrt(rng.uniform(0, 0.9, count))
    place = np.column_stack([away * np.cos(angle), away * np.sin(angle)])
    kind = Kind(BLOOD, 0.7, profile.opacity, profile.specks)
    dust = scatter(rng, kind, place)
    gain = np.array(profile.gain) * np.exp(rng.normal(0, profile.uneven, 3))
    tab = float(rng.choice([-0.785, 0.785, np.nan, np.nan]))
    gamma = rng.uniform(*profile.gamma)
    return _Site(gain.astype(np.float32), gamma, dust, tab)


def _plane(frame: CameraFrame) -> tuple[Floats32, Floats32]:
    """Return x and y of the pixels relative to the middle of the circle, in radii."""
    position = np.arange(frame.view.size) + 0.5
    x, y = (position - frame.middle[:, None]) / frame.radius
    return x.astype(np.float32)[None, :], y.astype(np.float32)[:, None]


def _lamp(rng: Rng, x: Floats32, y: Floats32, profile: Profile, bad: float) -> Floats32:
    """Draw the light (size, size) of the flash: weaker at the rim, uneven."""
    import cv2

    to_x, to_y = rng.normal(0, 0.1 + 0.2 * bad, 2)
    lost = rng.uniform(*profile.falloff) * ((x - to_x) ** 2 + (y - to_y) ** 2)
    grid = rng.standard_normal((4, 4), np.float32) * np.float32(0.03 + 0.14 * bad)
    size = max(x.size, y.size)
    patchy = cv2.resize(grid, (size, size), interpolation=cv2.INTER_CUBIC)
    brightness = np.exp(rng.normal(0.05, 0.07 + 0.18 * bad))
    lamp: Floats32 = (brightness * np.exp(patchy - lost)).astype(np.float32)
    return lamp


def _haze(rng: Rng, image: Floats32, x: Floats32, y: Floats32, bad: float) -> Floats32:
    """Add haze, and to a bad picture a bright crescent at the rim."""
    haze = np.float32(0.6 * bad**1.5 * rng.uniform(0.5, 1.0))
    image += haze * (HAZE - image)
    angle, strength = rng.uniform(0, 2 * np.pi), rng.uniform(0.0, 1.0)
    if strength < 1.6 * bad - 0.4:
        towards = x * np.float32(np.cos(angle)) + y * np.float32(np.sin(angle))
        crescent = (np.hypot(x, y) + 0.6 * towards - 1.15).clip(0.0, 0.45)
        image += crescent[..., None] * (GLARE * np.float32(0.6 + strength))
    return image


def _dust(frame: CameraFrame, camera: _Site) -> Floats32:
    lens = RetinaView(frame.radius * np.eye(2), frame.middle, frame.view.size)
    densities: Floats32 = paint(lens, np.empty((0, STROKE)), camera.dust)[BLOOD]
    return densities


def _aperture(frame: CameraFrame, x: Floats32, y: Floats32, camera: _Site) -> Floats32:
    """Return (size, size) 1 inside the round image and its tab, 0 outside."""
    radius = np.float32(frame.radius)
    inside = ((1.0 - np.hypot(x, y)) * radius + 0.5).clip(0.0, 1.0)
    if not np.isnan(camera.tab):
        cosine, sine = np.float32(np.cos(camera.tab)), np.float32(np.sin(camera.tab))
        along, across = x * cosine + y * sine, np.abs(y * cosine - x * sine)
        tab = np.minimum(1.045 - along, 0.035 - across) * radius + 0.5
        inside = np.where(along > 0.9, np.maximum(inside, tab.clip(0.0, 1.0)), inside)
    uncropped = (frame.height - np.abs(y) * radius + 0.5).clip(0.0, 1.0)
    aperture: Floats32 = (inside * uncropped).astype(np.float32)
    return aperture


def _compress(pixels: Bytes, quality: float) -> Bytes:
    """Compress a picture as JPEG, more mildly if it is small, and decode it."""
    import cv2

    harm = min(1.0, np.sqrt(len(pixels) / REFERENCE))
    chosen = round(100 - harm * (100 - quality))
    flags = [cv2.IMWRITE_JPEG_QUALITY, chosen]
    _, file = cv2.imencode(".jpg", pixels[..., ::-1], flags)
    stored = np.asarray(cv2.imdecode(file, cv2.IMREAD_COLOR))
    return np.ascontiguousarray(stored[..., ::-1], np.uint8)
