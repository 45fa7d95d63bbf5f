"""What a project's source says of its requirements: what it imports, and which folders have to be compiled."""

from __future__ import annotations

import ast
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SKIPPED = {"node_modules", "site-packages", "__pycache__", "build", "dist", "venv", "env", "tests", "test", "docs"}
_MOST_FILES, _MOST_BYTES = 5000, 2_000_000
_CUDA_SOURCES = (".cu", ".cuh")
_EXTENSION = re.compile(rb"CUDAExtension|CppExtension|cpp_extension")

# Modules whose distribution has another name; and those that are worth asking for where nothing asks for anything.
_DISTRIBUTIONS = {
    "PIL": "pillow",
    "cv2": "opencv-python",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "yaml": "pyyaml",
    "bs4": "beautifulsoup4",
    "dateutil": "python-dateutil",
    "google": "protobuf",
    "attr": "attrs",
    "OpenSSL": "pyopenssl",
    "pytorch_lightning": "pytorch-lightning",
    "torch_geometric": "torch-geometric",
    "tensorboardX": "tensorboardx",
    "mpl_toolkits": "matplotlib",
    "ruamel": "ruamel.yaml",
    "faiss": "faiss-cpu",
    "hydra": "hydra-core",
    "open_clip": "open-clip-torch",
    "Levenshtein": "levenshtein",
    "pkg_resources": "setuptools",
    "sentence_transformers": "sentence-transformers",
    "huggingface_hub": "huggingface-hub",
}
_SAME = frozenset(
    """
    torch torchvision torchaudio torchtext numpy scipy pandas matplotlib seaborn tqdm transformers datasets
    tokenizers accelerate evaluate peft diffusers timm einops wandb tensorboard requests h5py numba networkx
    sympy nltk spacy gensim sentencepiece safetensors torchmetrics albumentations kornia imageio librosa
    soundfile pydantic click rich fire hydra omegaconf gymnasium gym lmdb psutil joblib tiktoken ftfy regex
    xgboost lightgbm optuna plotly bitsandbytes triton onnx onnxruntime open_clip sacrebleu rouge_score
    editdistance pyarrow polars mlflow dill cloudpickle tabulate
    """.split()
)


@dataclass(slots=True)
class Found:
    """``distributions`` by name with the first file that imports them; ``unknown`` modules; ``builds`` folders."""

    distributions: dict[str, str] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    builds: set[str] = field(default_factory=set)


def scan(root: Path) -> Found:
    """Reads imports and looks for sources that have to be compiled; nothing is imported or run."""
    found = Found()
    names: dict[str, str] = {}
    local = set()
    for path in _files(root):
        name = path.relative_to(root)
        if path.suffix in _CUDA_SOURCES:
            found.builds.add(_build_folder(path, root))
            continue
        local.add(path.stem)
        local.update(name.parts[:-1])
        data = _bytes(path)
        if path.name == "setup.py" and _EXTENSION.search(data):
            found.builds.add(name.parent.as_posix())
        for module in _modules(path, data):
            names.setdefault(module, name.as_posix())
    for module, importer in names.items():
        if module in sys.stdlib_module_names or module in local:
            continue
        if module in _DISTRIBUTIONS or module in _SAME:
            found.distributions.setdefault(_DISTRIBUTIONS.get(module, module.replace("_", "-")), importer)
        else:
            found.unknown.add(module)
    return found


def _files(root: Path) -> Iterator[Path]:
    count = 0
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(each for each in folders if not each.startswith(".") and each not in _SKIPPED)
        for name in sorted(files):
            if name.endswith((".py", ".ipynb", *_CUDA_SOURCES)):
                count += 1
                if count > _MOST_FILES:
                    return
                yield Path(folder, name)


def _build_folder(path: Path, root: Path) -> str:
    """The nearest folder above with a setup.py, else the one that the file is in."""
    for folder in path.parents:
        if (folder / "setup.py").is_file():
            return folder.relative_to(root).as_posix()
        if folder == root:
            break
    return path.parent.relative_to(root).as_posix()


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.stat().st_size <= _MOST_BYTES else b""
    except OSError:
        return b""


def _modules(path: Path, data: bytes) -> Iterator[str]:
    """The top-level modules that a file imports, those of a notebook's cells included."""
    if path.suffix == ".ipynb":
        try:
            cells = json.loads(data).get("cells", [])
            texts = ["".join(cell.get("source", "")) for cell in cells if cell.get("cell_type") == "code"]
        except (ValueError, AttributeError, TypeError):
            return
        data = "\n".join(re.sub(r"(?m)^\s*[%!].*$", "", text) for text in texts).encode()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.split(".")[0]
