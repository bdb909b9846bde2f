"""Predictions of a network that is trained already, by any method that can serve it."""

from qualms.trained.predict import predict

__all__ = ["predict"]
