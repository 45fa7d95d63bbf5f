"""The one name that scripts import."""

from torchtext.data import Dataset


class TranslationDataset(Dataset):
    pass
