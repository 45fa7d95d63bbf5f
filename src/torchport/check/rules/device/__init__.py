"""Tensors and modules on the wrong device."""
