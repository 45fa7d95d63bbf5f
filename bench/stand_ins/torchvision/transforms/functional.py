"""The functions behind the transforms."""

import numpy as np
import torch
from PIL import Image, ImageEnhance, ImageOps


def pair(size):
    return (size, size) if isinstance(size, int) else tuple(size)


def to_tensor(image):
    array = np.array(image)
    if array.ndim == 2:
        array = array[:, :, None]
    tensor = torch.from_numpy(array.transpose(2, 0, 1).copy())
    return tensor.float().div(255) if tensor.dtype == torch.uint8 else tensor


def to_pil_image(tensor):
    array = tensor.mul(255).byte().numpy().transpose(1, 2, 0) if isinstance(tensor, torch.Tensor) else tensor
    return Image.fromarray(array[:, :, 0] if array.shape[-1] == 1 else array)


def normalize(tensor, mean, std, inplace=False):
    mean, std = (torch.as_tensor(value, dtype=tensor.dtype, device=tensor.device) for value in (mean, std))
    if not inplace:
        tensor = tensor.clone()
    return tensor.sub_(mean.view(-1, 1, 1)).div_(std.view(-1, 1, 1))


def resize(image, size, interpolation=None):
    if isinstance(size, int):
        scale = size / min(image.size)
        wanted = tuple(max(1, round(side * scale)) for side in image.size)
    else:
        wanted = (size[1], size[0])
    return image.resize(wanted, Image.Resampling.BILINEAR)


def crop(image, top, left, height, width):
    return image.crop((left, top, left + width, top + height))


def center_crop(image, size):
    height, width = pair(size)
    return crop(image, (image.size[1] - height) // 2, (image.size[0] - width) // 2, height, width)


def pad(image, padding):
    return ImageOps.expand(image, padding)


def hflip(image):
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)


def adjust_brightness(image, factor):
    return ImageEnhance.Brightness(image).enhance(factor)
