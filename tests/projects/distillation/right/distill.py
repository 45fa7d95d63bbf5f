from collections import OrderedDict

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 4


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.wide = nn.Linear(10, 64)
        self.out = nn.Linear(64, CLASSES)

    def forward(self, x):
        h = self.wide(x).relu()
        return self.out(h)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, CLASSES))

    def forward(self, x):
        return self.layers(x)


class EMA:
    """Exponential moving average of a model's weights."""

    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = OrderedDict()
        for name, weight in model.state_dict().items():
            self.shadow[name] = weight.detach().clone()

    @torch.no_grad()
    def update(self, model):
        for name, weight in model.state_dict().items():
            self.shadow[name].mul_(self.decay).add_(weight, alpha=1 - self.decay)


def distillation_loss(student_logits, teacher_logits, labels, temperature):
    soft = F.kl_div(
        F.log_softmax(student_logits / temperature, dim=1),
        F.softmax(teacher_logits / temperature, dim=1),
        reduction="batchmean",
    )
    return 0.5 * F.cross_entropy(student_logits, labels) + 0.5 * soft * temperature**2


def main():
    torch.manual_seed(6)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    features = torch.randn(64, 10)
    labels = features[:, :CLASSES].argmax(dim=1)
    loader = DataLoader(TensorDataset(features, labels), batch_size=16, pin_memory=device.type == "cuda")

    teacher = Teacher().to(device).eval()
    student = Student().to(device)
    ema = EMA(student)
    temperature = torch.tensor(2.0)  # a number in a tensor may stay on the CPU
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    curve = []
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        with torch.no_grad():
            teacher_logits = teacher(x)
        loss = distillation_loss(student(x), teacher_logits, y, temperature)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ema.update(student)
        curve.append(loss.detach())
    print("losses", np.array([value.item() for value in curve]).round(4))

    student.load_state_dict(ema.shadow)
    student.eval()
    with torch.inference_mode():
        accuracy = (student(features.to(device)).cpu().argmax(dim=1) == labels).float().mean()
    print(f"accuracy of the average: {accuracy:.2f}")


if __name__ == "__main__":
    main()
