import torch


def rk4(func, y, times):
    """Values of y at all times by Runge-Kutta; y' = func(t, y)."""
    values = [y]
    for t, after in zip(times[:-1], times[1:]):
        h = after - t
        k1 = func(t, y)
        k2 = func(t + h / 2, y + h / 2 * k1)
        k3 = func(t + h / 2, y + h / 2 * k2)
        k4 = func(after, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        values.append(y)
    return torch.stack(values)


class Spiral:
    """Noisy observations of a damped rotation, computed on the CPU."""

    def __init__(self, steps, noise=0.02):
        self.times = torch.linspace(0, 1.5, steps)
        matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
        self.clean = rk4(lambda t, y: y @ matrix, torch.tensor([[2.0, 0.0]]), self.times)
        self.noisy = self.clean + noise * torch.randn(self.clean.shape)

    def windows(self, count, length, device):
        starts = torch.randint(len(self.times) - length, (count,)).tolist()
        paths = torch.cat([self.noisy[i : i + length] for i in starts], dim=1)
        return paths[0].to(device), self.times[:length].to(device), paths.to(device)
