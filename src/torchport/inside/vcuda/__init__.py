"""A CUDA device that lives in host memory.

``with virtual_cuda(gpus=2) as session:`` gives this process two cards; all that it changes is undone on exit.
"""

from torchport.inside.vcuda.session import Session, current, virtual_cuda

__all__ = ["Session", "current", "virtual_cuda"]
