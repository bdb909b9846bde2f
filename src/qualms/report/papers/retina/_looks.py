"""One colour and marker per method of the RETINA benchmark."""

# Okabe & Ito (2008): told apart with all common kinds of sight. Black is the NHS point.
COLOURS = {
    "map": "#56B4E9",
    "mc_dropout": "#0072B2",
    "mfvi": "#E69F00",
    "radial": "#009E73",
    "rank1": "#CC79A7",
    "fsvi": "#D55E00",
}
MARKERS = dict(zip(COLOURS, "osD^vP", strict=True))
_SPARE = ("#332288", "#8C8C8C", "#882255", "#999933")
# Tol (2021), vibrant: a blue and a red that all common kinds of sight tell apart.
CORRECT = "#0077BB"
INCORRECT = "#CC3311"
# One hue that darkens, so that the order shows without colour.
BLUR_COLOURS = {5: "#F0A35E", 10: "#D1605E", 20: "#8C3B73", 30: "#32205F"}
BLUR_MARKERS = {5: "o", 10: "s", 20: "^", 30: "D"}


def colour(method: str) -> str:
    """The colour of a method; one to spare for a method the paper does not have."""
    return COLOURS.get(method, _SPARE[sum(map(ord, method)) % len(_SPARE)])


def marker(method: str) -> str:
    """The marker of a method."""
    return MARKERS.get(method, "X")
