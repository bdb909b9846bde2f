"""Predictions of a network that is trained already, by any method that can serve it."""

from qualms.trained._pictures import (
    PicturePredictions,
    PictureRequest,
    predict_pictures,
)
from qualms.trained.lightning import lightning_callback
from qualms.trained.predict import predict

__all__ = [
    "PicturePredictions",
    "PictureRequest",
    "lightning_callback",
    "predict",
    "predict_pictures",
]
