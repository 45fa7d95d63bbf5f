import torch
import torch.nn as nn
import torch.nn.functional as F


class Down(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(c_out)

    def forward(self, x):
        return F.relu(self.norm(self.conv(x)))


class Up(nn.Module):
    def __init__(self, c_in, c_out):
        super().__init__()
        self.reduce = nn.Conv2d(c_in, c_out, 3, padding=1)
        self.norm = nn.BatchNorm2d(c_out)

    def forward(self, x, skip):
        x = F.interpolate(x, scale_factor=2, mode="nearest")
        x = torch.cat([x, skip], dim=1)
        x = self.reduce(x)
        x = self.norm(x)
        return F.relu(x)


class UNet(nn.Module):
    def __init__(self, num_classes, widths=(6, 8, 12)):
        super().__init__()
        a, b, c = widths
        self.downs = nn.ModuleList([Down(1, a), Down(a, b), Down(b, c)])
        self.ups = nn.ModuleList([Up(c + b, b), Up(b + a, a)])
        self.head = nn.Conv2d(a, num_classes, 1)

    def forward(self, x):
        skips = []
        for i, down in enumerate(self.downs):
            x = down(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        for up, skip in zip(self.ups, reversed(skips[:-1])):
            x = up(x, skip)
        return self.head(x)
