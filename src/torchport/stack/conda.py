"""environment.yml: what conda is asked for, in the names and versions of Python's own index."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchport.stack.read import Reading

# Other names for the same thing.
_NAMES = {
    "pytorch": "torch",
    "opencv": "opencv-python",
    "py-opencv": "opencv-python",
    "pytables": "tables",
    "msgpack-python": "msgpack",
    "matplotlib-base": "matplotlib",
    "importlib_metadata": "importlib-metadata",
    "pyqt": "pyqt5",
    "tensorboard-base": "tensorboard",
}
# What is no Python package, or comes with torch's wheels.
_ASIDE = re.compile(
    r"pip|setuptools|wheel|cudnn|nccl|mkl.*|blas|openblas|libblas|nomkl|ffmpeg|gcc.*|gxx.*|cmake|ninja|git|make|cuda.*"
    r"|lib[a-z].*|_.*|openssl|zlib|readline|sqlite|tk|xz|bzip2|ca-certificates|conda.*|pytorch-mutex|ipykernel|nodejs"
    r"|compilers|cxx-compiler|c-compiler"
)
_CUDA = ("pytorch-cuda", "cudatoolkit", "cuda-version", "cuda-toolkit")
_LINE = re.compile(r"([A-Za-z0-9_.-]+(?:\[[^\]]*\])?)\s*(.*)")


def read(reading: Reading) -> None:
    for path in sorted([*reading.root.glob("environment*.y*ml"), *reading.root.glob("conda*.y*ml")]):
        text = reading.text(path)
        if text is not None and "dependencies:" in text:
            _file(reading, text, path.name)


def _file(reading: Reading, text: str, name: str) -> None:
    """Reads the lists that such files are made of; other YAML in them says nothing about packages."""
    inside, pip_indent = False, None
    for line in text.splitlines():
        line = re.sub(r"(?:^|\s)#.*", "", line).rstrip()
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        if not bare:
            continue
        if not bare.startswith("-"):
            inside = bare.startswith("dependencies:") if indent == 0 else inside
            continue
        item = bare.lstrip("-").strip().strip("\"'")
        if not inside:
            continue
        if item == "pip:":
            pip_indent = indent
        elif pip_indent is not None and indent > pip_indent:
            _pip(reading, bare[1:].strip().strip("\"'"), name)
        else:
            pip_indent = None
            _conda(reading, item, name)


def _pip(reading: Reading, item: str, name: str) -> None:
    from torchport.stack.manifests import cuda_of_index

    if item.startswith("-"):
        cuda = cuda_of_index(item)
        if cuda:
            reading.add_cuda(cuda, name)
        return
    reading.add(item, name)


def _conda(reading: Reading, item: str, path: str) -> None:
    match = _LINE.fullmatch(item.rpartition("::")[2])
    if match is None:
        reading.skipped.append((path, item))
        return
    name, version = match[1].split("[")[0].lower(), _version(match[2])
    if name == "python":
        reading.add_python(version, path)
    elif name in _CUDA:
        cuda = re.search(r"\d+\.\d+", version)
        if cuda:
            reading.add_cuda(cuda[0], path)
    elif not _ASIDE.fullmatch(name):
        if "cpu" not in match[2] and (build := re.search(r"cuda?(\d+\.\d)", match[2])) and name == "pytorch":
            reading.add_cuda(build[1], path)
        reading.add(_NAMES.get(name, name) + version, path)
    else:
        reading.skipped.append((path, item))


def _version(text: str) -> str:
    """``=1.2`` and ``=1.2=py310_0`` are any 1.2; ``==1.2`` is that one; ``>=1,<2`` is as everywhere."""
    text = text.strip().replace(" ", "")
    if text.startswith("==") or text[:1] in "<>!~":
        return re.sub(r"(?<=[\d*])=.*", "", text)
    if text.startswith("=") or text[:1].isdigit():
        number = text.lstrip("=").split("=")[0]
        return f"=={number}" if number.endswith("*") else f"=={number}.*" if number else ""
    return ""
