"""A stand-in for torchvision: random data and small models of the right shapes, for bench/public.py only."""

from torchvision import datasets, models, transforms, utils

__version__ = "0.0+stand_in"
__all__ = ["datasets", "models", "transforms", "utils"]
