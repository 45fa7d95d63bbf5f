import torch


def make_grid(height, width, device):
    """x and y of every cell, as (height * width, 2)."""
    rows, columns = torch.arange(height, device=device), torch.arange(width, device=device)
    y, x = torch.meshgrid(rows, columns, indexing="ij")
    return torch.stack([x, y], dim=-1).float().view(-1, 2)


def centre_to_corners(boxes):
    xy, wh = boxes[..., :2], boxes[..., 2:]
    return torch.cat([xy - wh / 2, xy + wh / 2], dim=-1)


def box_iou(a, b):
    """IoU of every box in a (n, 4) with every box in b (m, 4); corners."""
    area_a = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
    area_b = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    top_left = torch.max(a[:, None, :2], b[:, :2])
    bottom_right = torch.min(a[:, None, 2:], b[:, 2:])
    overlap = (bottom_right - top_left).clamp(min=0).prod(dim=2)
    return overlap / (area_a[:, None] + area_b - overlap)
