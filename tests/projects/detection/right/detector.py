import torch
import torch.nn as nn
from boxes import make_grid


class Head(nn.Module):
    """Predicts, for each cell, one box around an anchor, how sure it is, and the class."""

    stride = 4
    anchor = (6.0, 6.0)

    def __init__(self, channels, num_classes):
        super().__init__()
        self.conv = nn.Conv2d(channels, 5 + num_classes, 1)
        self.grids = {}

    def grid(self, height, width, device):
        key = (height, width, device)
        if key not in self.grids:
            self.grids[key] = make_grid(height, width, device)
        return self.grids[key]

    def forward(self, features):
        h, w = features.shape[-2:]
        out = self.conv(features).flatten(2).transpose(1, 2)
        grid = self.grid(h, w, features.device)
        anchor = features.new_tensor(self.anchor)
        xy = (out[..., :2].sigmoid() + grid) * self.stride
        wh = out[..., 2:4].clamp(max=4).exp() * anchor
        return torch.cat([xy, wh], dim=-1), out[..., 4], out[..., 5:]


class Detector(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1),
            nn.GroupNorm(2, 8),
            nn.SiLU(),
            nn.Conv2d(8, 16, 3, stride=2, padding=1),
            nn.SiLU(),
        )
        self.head = Head(16, num_classes)

    def forward(self, images):
        return self.head(self.backbone(images))
