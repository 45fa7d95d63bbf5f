"""The transforms as callables; random ones draw from torch's default generator, as torchvision does."""

import torch

from torchvision.transforms import functional

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "Grayscale",
    "Lambda",
    "Normalize",
    "Pad",
    "RandomApply",
    "RandomCrop",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "Resize",
    "ToPILImage",
    "ToTensor",
]


def _chance(p):
    return torch.rand(1).item() < p


def _integer(bound):
    return int(torch.randint(0, max(bound, 1), (1,)).item())


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, image):
        for transform in self.transforms:
            image = transform(image)
        return image


class RandomApply(Compose):
    def __init__(self, transforms, p=0.5):
        super().__init__(transforms)
        self.p = p

    def __call__(self, image):
        return super().__call__(image) if _chance(self.p) else image


class Lambda:
    def __init__(self, lambd):
        self.lambd = lambd

    def __call__(self, image):
        return self.lambd(image)


class ToTensor:
    def __call__(self, image):
        return functional.to_tensor(image)


class ToPILImage:
    def __call__(self, tensor):
        return functional.to_pil_image(tensor)


class Normalize:
    def __init__(self, mean, std, inplace=False):
        self.mean, self.std, self.inplace = mean, std, inplace

    def __call__(self, tensor):
        return functional.normalize(tensor, self.mean, self.std, self.inplace)


class Resize:
    def __init__(self, size, interpolation=None):
        self.size = size

    def __call__(self, image):
        return functional.resize(image, self.size)


class CenterCrop:
    def __init__(self, size):
        self.size = size

    def __call__(self, image):
        return functional.center_crop(image, self.size)


class Pad:
    def __init__(self, padding):
        self.padding = padding

    def __call__(self, image):
        return functional.pad(image, self.padding)


class RandomCrop:
    def __init__(self, size, padding=0):
        self.size, self.padding = functional.pair(size), padding

    def __call__(self, image):
        image = functional.pad(image, self.padding)
        height, width = self.size
        top, left = _integer(image.size[1] - height + 1), _integer(image.size[0] - width + 1)
        return functional.crop(image, top, left, height, width)


class RandomResizedCrop:
    def __init__(self, size, scale=(0.08, 1.0), ratio=None):
        self.size, self.scale = functional.pair(size), scale

    def __call__(self, image):
        low, high = self.scale
        side = (low + (high - low) * torch.rand(1).item()) ** 0.5
        width, height = (max(1, int(full * side)) for full in image.size)
        top, left = _integer(image.size[1] - height + 1), _integer(image.size[0] - width + 1)
        return functional.resize(functional.crop(image, top, left, height, width), self.size)


class RandomHorizontalFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, image):
        return functional.hflip(image) if _chance(self.p) else image


class Grayscale:
    def __call__(self, image):
        return image.convert("L").convert(image.mode)


class RandomGrayscale(RandomHorizontalFlip):
    def __call__(self, image):
        return Grayscale()(image) if _chance(self.p) else image


class ColorJitter:
    def __init__(self, brightness=0.0, contrast=0.0, saturation=0.0, hue=0.0):
        self.brightness = brightness

    def __call__(self, image):
        return functional.adjust_brightness(image, 1 + self.brightness * (2 * torch.rand(1).item() - 1))
