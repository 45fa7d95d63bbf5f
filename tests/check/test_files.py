"""Rules over files that are not Python, each on its own examples and on tables of look-alikes."""

import re
import textwrap

import pytest

from torchport.check.engine import check_source
from torchport.check.files import kind_of
from torchport.check.repair import repair
from torchport.check.rules import rules
from torchport.check.texts import Text

# What a file of each kind is called; the first that a rule reads is that of its examples.
NAMES = {
    "requirements": "requirements.txt",
    "shell": "train.sh",
    "dockerfile": "Dockerfile",
    "makefile": "Makefile",
    "markdown": "README.md",
    "compose": "compose.yaml",
    "yaml": "config.yaml",
}
RULES = {loaded.rule.name: loaded for loaded in rules() if "python" not in loaded.files}


def examples(text, kind):
    found = re.findall(rf"^{kind}::\n\n((?:    .*\n|\n)+)", text, re.MULTILINE)
    return [textwrap.dedent(block).strip("\n") + "\n" for block in found]


def first_name(loaded):
    return next(NAMES[kind] for kind in NAMES if kind in loaded.files)


def text_of(name, text):
    return Text(name, text, kind_of(name))


def found(source, loaded=None):
    return check_source(source, (2, 13), [loaded] if loaded else None)


@pytest.mark.parametrize("name", RULES)
def test_examples(name):
    loaded = RULES[name]
    file = first_name(loaded)
    bad, good = examples(loaded.text, "Bad"), examples(loaded.text, "Good")
    assert bad and good
    for text in bad:
        assert found(text_of(file, text), loaded), text
    for text in good:
        assert found(text_of(file, text), loaded) == [], text
    if any(finding.fix for finding in found(text_of(file, bad[0]), loaded)):
        done = repair(text_of(file, bad[0]), lambda source: found(source, loaded), unsafe=True)
        assert done.failed == ()
        assert done.text == good[0]
        other = repair(text_of(file, bad[0].replace("\n", "\r\n")), lambda s: found(s, loaded), unsafe=True)
        assert other.text == good[0].replace("\n", "\r\n")


GPU_SERVICE = """\
services:
  train:
    image: trainer
    {more}deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              capabilities: [gpu]
  board:
    image: board
volumes:
  data:
"""

CASES = [
    # the launcher
    ("run.sh", "python -m torch.distributed.launch train.py\n", ["C330"]),
    ("run.sh", "$PYTHON -m torch.distributed.launch train.py\n", ["C330"]),
    ("run.sh", "# python -m torch.distributed.launch train.py\n", []),
    ("run.sh", "python -m torch.distributed.run train.py\ntorchrun train.py\n", []),
    ("run.sh", "python -m torch.distributed.launcher_of_mine train.py\n", []),
    ("Makefile", "train:\n\tpython -m torch.distributed.launch train.py\n", ["C330"]),
    ("Dockerfile", "FROM x\nCMD python -m torch.distributed.launch train.py\n", ["C330"]),
    ("README.md", "Use `python -m torch.distributed.launch`\n", []),
    ("README.md", "```\npython -m torch.distributed.launch a.py\n```\n", ["C330"]),
    (
        "README.md",
        "~~~bash\npython -m torch.distributed.launch a.py\n~~~\npython -m torch.distributed.launch\n",
        ["C330"],
    ),
    ("README.md", "```python\n# python -m torch.distributed.launch a.py\n```\n", []),
    ("README.md", "```\npython -m torch.distributed.launch a.py\n", []),  # a block that never ends
    ("run.sh", "python -m torch.distributed.launch a.py  # torchport: ignore[C330]\n", []),
    ("run.sh", "# torchport: ignore[deprecated-launcher]\npython -m torch.distributed.launch a.py\n", []),
    ("run.sh", "# torchport: ignore[C101]\npython -m torch.distributed.launch a.py\n", ["C330"]),
    # shared memory
    ("run.sh", "docker run --gpus all x\n", ["C960"]),
    ("run.sh", "docker run \\\n  --gpus all \\\n  --shm-size 8g x\n", []),
    ("run.sh", "docker run --gpus all $DOCKER_ARGS x\n", []),
    ("run.sh", "docker run --gpus all -v /dev/shm:/dev/shm x\n", []),
    ("run.sh", "podman run --device nvidia.com/gpu=all x\n", ["C960"]),
    ("run.sh", "docker build --gpus all .\ndocker run x\n", []),
    ("compose.yaml", GPU_SERVICE.format(more=""), ["C960"]),
    ("docker-compose.gpu.yml", GPU_SERVICE.format(more="ipc: host\n    "), []),
    ("compose.yaml", GPU_SERVICE.format(more="shm_size: 8gb\n    "), []),
    ("compose.yaml", GPU_SERVICE.replace("[gpu]", "[tpu]").format(more=""), []),
    ("compose.yaml", "services:\n", []),
    ("compose.yaml", "services:\n  - a\n", []),
    ("compose.yaml", "", []),
    # requirements
    ("requirements.txt", "torch==2.6.0\ntorchvision==0.20.0\n", ["C961"]),
    ("requirements.txt", "torch==2.6.0+cu124\ntorchvision==0.21.0+cu124\n", []),
    ("requirements.txt", "torch==1.13.1\ntorchvision==0.13.1\n", ["C961"]),
    ("requirements.txt", "torch==2.6.0\ntorchaudio==2.5.0\n", ["C961"]),
    ("requirements.txt", "torch==2.6.0\ntorchvision\n", []),
    ("requirements.txt", "torch==2.6.0\ntorchvision>=0.20\n", []),
    ("requirements.txt", "torch>=2.0,<2.3\n", []),
    ("requirements.txt", "# torch\ntorchtext\npytorch-lightning\n", []),
    ("requirements.txt", "torch @ file:///wheels/torch.whl\n", []),
    ("requirements.txt", 'torch[opt]; python_version > "3.8"\n', ["C962"]),
    ("requirements-dev.in", "torch\n", ["C962"]),
    ("requirements/base.txt", "torch\n", ["C962"]),
    ("Dockerfile", "RUN pip install torch torchvision\n", ["C962"]),
    ("Dockerfile", "RUN pip install torch==2.6.0 torchvision==0.20.1 && pip install torchvision==0.21.0\n", ["C961"]),
    ("Dockerfile", 'RUN pip install "torch==2.6.0" --no-cache-dir\n', []),
    ("Dockerfile", "RUN pip install -r requirements.txt\nCOPY torch /torch\n", []),
    ("requirements.txt", "-f https://x.org/whl/cpu/torch_stable.html\ntorch==2.6.0\n", ["C963"]),
    ("requirements-cpu.txt", "torch==2.6.0+cpu\n", []),
    ("docker/Dockerfile.cpu", "RUN pip install torch==2.6.0+cpu\n", []),
    ("install.sh", "conda install pytorch=2.1 cpuonly -c pytorch\n", ["C963"]),
    ("install.sh", "if gpu; then I=https://x.org/whl/cu124; else I=https://x.org/whl/cpu; fi\n", []),
    # settings
    ("config.yaml", "root: /home/alice/data\n", ["C964"]),
    ("config.yaml", "paths:\n  - '/Users/bob/x y'\n", ["C964"]),
    ("config.yaml", "root: D:\\data\\train\n", ["C964"]),
    ("config.yaml", "url: https://x.org/home/alice/data\nd: data/home/alice/\n# /home/alice/x\n", []),
    (".github/workflows/ci.yml", "run: /home/alice/x\n", []),
]


@pytest.mark.parametrize(("name", "text", "expected"), CASES)
def test_cases(name, text, expected):
    assert [finding.id for finding in found(text_of(name, text))] == expected


@pytest.mark.parametrize(("name", "text", "expected"), [case for case in CASES if case[2]])
def test_repairs_hold(name, text, expected):
    done = repair(text_of(name, text), found, unsafe=True)
    assert done.failed == ()
    assert len(done.applied) == (done.text != text)


def test_a_service_gets_its_memory():
    source = text_of("compose.yaml", GPU_SERVICE.format(more=""))
    assert repair(source, found, unsafe=True).text == GPU_SERVICE.format(more="").replace(
        "    image: trainer\n", "    shm_size: 8gb\n    image: trainer\n"
    )


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("python -m torch.distributed.launch --use_env train.py\n", "torchrun train.py\n"),
        ("python -u -m torch.distributed.launch --use-env a.py\n", "python -u -m torch.distributed.run a.py\n"),
        ("python -m torch.distributed.launch train.py\n", None),
    ],
)
def test_the_launcher_is_replaced_where_the_program_reads_the_environment(text, safe):
    assert repair(text_of("run.sh", text), found).text == (safe or text)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a/train.py", "python"),
        ("a.ipynb", "notebook"),
        ("job.sbatch", "shell"),
        ("Dockerfile", "dockerfile"),
        ("docker/Dockerfile.gpu", "dockerfile"),
        ("gpu.dockerfile", "dockerfile"),
        ("Containerfile", "dockerfile"),
        ("makefile", "makefile"),
        ("docker-compose.yml", "compose"),
        ("compose.override.yaml", "compose"),
        ("composer.yaml", "yaml"),
        ("requirements_dev.txt", "requirements"),
        ("requirements/gpu.txt", "requirements"),
        ("notes.txt", ""),
        ("requirements", ""),
        ("README.md", "markdown"),
        ("train", ""),
    ],
)
def test_kinds(name, kind):
    assert kind_of(name) == kind
