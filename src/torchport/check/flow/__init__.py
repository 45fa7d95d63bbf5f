"""Device flow: on which device tensors and modules are, followed through a file as if the GPU were there.

The target is a GPU: ``torch.cuda.is_available()`` is true, ``--cuda`` is given, and a device that the file does not
name is the GPU. What is not known stays unknown, and only two devices that are both known can meet.
"""
