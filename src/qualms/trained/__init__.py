"""Predictions of a network that is trained already, by any method that can serve it."""

from qualms.trained.pictures import (
    PicturePredictions,
    PictureWish,
    predict_pictures,
)
from qualms.trained.predict import predict

__all__ = ["PicturePredictions", "PictureWish", "predict", "predict_pictures"]
