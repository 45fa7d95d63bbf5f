"""A sorting layer: forward and backward are written with numpy."""

import numpy as np
import torch
from torch.autograd import Function


class NumpySort(Function):
    @staticmethod
    def forward(ctx, x):
        values = x.detach().numpy()  # MEET 1 R102 x
        ctx.order = np.argsort(values, axis=1, kind="stable")
        result = np.take_along_axis(values, ctx.order, axis=1)
        return torch.from_numpy(result)  # BORN 2

    @staticmethod
    def backward(ctx, grad_output):
        incoming = grad_output.cpu().numpy()
        grad = np.zeros_like(incoming)
        np.put_along_axis(grad, ctx.order, incoming, axis=1)
        return torch.from_numpy(grad)  # BORN 3


numpy_sort = NumpySort.apply
