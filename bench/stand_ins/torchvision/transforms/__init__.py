"""Image transforms on PIL images and tensors: enough of torchvision.transforms for small training runs."""

from torchvision.transforms import functional, transforms
from torchvision.transforms.transforms import *  # noqa: F403

__all__ = ["functional", "transforms", *transforms.__all__]
