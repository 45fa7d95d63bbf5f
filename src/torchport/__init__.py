"""torchport: PyTorch projects, made to run correctly, fast and reproducibly on GPU machines."""

__version__ = "0.1.0"
