"""Data sets of random images with the shapes, types and attributes of the real ones. FAKE_IMAGES sets the size."""

import os
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from PIL import Image

SIZE = int(os.environ.get("FAKE_IMAGES", "256"))


class VisionDataset(torch.utils.data.Dataset):
    def __init__(self, root=None, transforms=None, transform=None, target_transform=None):
        self.root = root
        self.transform = transform
        self.target_transform = target_transform

    def _pair(self, image, target):
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target


class _Random(VisionDataset):
    """Arrays that are the same in every process: the seed depends on the class and the split only."""

    shape: tuple[int, ...] = (28, 28)
    classes: ClassVar[list[str]] = [str(digit) for digit in range(10)]

    def __init__(self, root=None, train=True, transform=None, target_transform=None, download=False, split="train"):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train and split in ("train", "unlabeled", "train+unlabeled")
        random = np.random.RandomState(len(type(self).__name__) * 2 + self.train)
        count = SIZE if self.train else max(SIZE // 4, 32)
        self.data = random.randint(0, 256, (count, *self.shape)).astype(np.uint8)
        self.targets = random.randint(0, len(self.classes), count).tolist()

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        return self._pair(Image.fromarray(np.asarray(self.data[index])), int(self.targets[index]))


class MNIST(_Random):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.data = torch.from_numpy(self.data)
        self.targets = torch.tensor(self.targets)


class FashionMNIST(MNIST):
    pass


class CIFAR10(_Random):
    shape = (32, 32, 3)


class CIFAR100(CIFAR10):
    classes: ClassVar[list[str]] = [str(number) for number in range(100)]


class STL10(_Random):
    shape = (96, 96, 3)


class FakeData(VisionDataset):
    def __init__(self, size=1000, image_size=(3, 224, 224), num_classes=10, transform=None, target_transform=None):
        super().__init__(None, transform=transform, target_transform=target_transform)
        self.size, self.image_size, self.num_classes = min(size, SIZE), image_size, num_classes

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        channels, height, width = self.image_size
        pixels = np.random.RandomState(index).randint(0, 256, (height, width, channels)).astype(np.uint8)
        return self._pair(Image.fromarray(pixels), index % self.num_classes)


class ImageFolder(VisionDataset):
    def __init__(self, root, transform=None, target_transform=None, loader=None):
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.classes = sorted(entry.name for entry in Path(root).iterdir() if entry.is_dir())
        self.samples = [
            (str(path), label) for label, name in enumerate(self.classes) for path in sorted(Path(root, name).iterdir())
        ]
        self.imgs = self.samples

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        return self._pair(Image.open(path).convert("RGB"), label)
