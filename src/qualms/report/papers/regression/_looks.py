"""One colour and marker per row of the regression benchmark."""

# Okabe & Ito (2008) and Tol (2021), whose colours differ for all common kinds of sight.
COLOURS = {
    "conformal": "#0072B2",
    "ensemble": "#56B4E9",
    "gaussian": "#E69F00",
    "gaussian_ensemble": "#D55E00",
    "quantile": "#009E73",
    "gaussian_gmm": "#CC79A7",
    "gaussian_knn": "#332288",
    "gaussian_variance": "#8C8C8C",
    "gaussian_ensemble_gmm": "#882255",
    "gaussian_ensemble_variance": "#44AA99",
}
MARKERS = dict(zip(COLOURS, "osD^vPXhp*", strict=True))
