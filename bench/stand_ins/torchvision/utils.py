"""Image grids and files."""

import torch

from torchvision.transforms import functional


def make_grid(tensor, nrow=8, padding=2, normalize=False, **_):
    images = torch.stack(list(tensor)) if isinstance(tensor, list) else tensor
    images = images.unsqueeze(0) if images.dim() == 3 else images
    if normalize:
        low, high = images.min(), images.max()
        images = (images - low) / (high - low + 1e-5)
    rows = [torch.cat(list(images[start : start + nrow]), dim=-1) for start in range(0, len(images), nrow)]
    width = rows[0].shape[-1]
    rows = [torch.nn.functional.pad(row, (0, width - row.shape[-1])) for row in rows]
    grid = torch.cat(rows, dim=-2)
    return grid.expand(3, -1, -1) if grid.shape[0] == 1 else grid


def save_image(tensor, fp, nrow=8, padding=2, normalize=False, format=None, **_):
    grid = make_grid(tensor, nrow=nrow, padding=padding, normalize=normalize)
    functional.to_pil_image(grid.detach().clamp(0, 1).to("cpu", torch.float32)).save(fp, format=format)
