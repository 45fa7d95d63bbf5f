from .bag import BagOfWords

__all__ = ["BagOfWords"]
