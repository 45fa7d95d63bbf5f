"""The torch that a project asks for."""

import pytest

from torchport.check.target import of_project, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.6", (2, 6)),
        ("2.6.0", (2, 6)),
        (" >=2.4 ", (2, 4)),
        ("==1.13.1+cu117", (1, 13)),
        ("2", (2, 0)),
        ("2.*", (2, 0)),
        ("", None),
        ("new", None),
        ("<2", None),
    ],
)
def test_parse(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("requirements.txt", "torch==2.1.0\n", (2, 1)),
        ("requirements.txt", "numpy\ntorch >= 1.13  # why\n", None),
        ("requirements.txt", 'torch~=2.2.0; python_version > "3.8"\n', (2, 2)),
        ("requirements.txt", "torch>=2.0,<2.3\n", (2, 2)),
        ("requirements.txt", "torch<2.0,>=1.9\n", (1, 99)),
        ("requirements.txt", "torch<=2.0\n", (2, 0)),
        ("requirements.txt", "torch\n", None),
        ("requirements.txt", "# torch==1.0\ntorchvision==0.9\npytorch-lightning==1.0\n", None),
        ("requirements-gpu.txt", "torch==2.3.1+cu121\n", (2, 3)),
        ("requirements/base.txt", "torch==2.3\n", (2, 3)),
        ("environment.yml", "dependencies:\n  - python=3.10\n  - pytorch=1.13\n", (1, 13)),
        ("environment.yml", "dependencies:\n  - pip:\n    - torch==2.0.1\n", (2, 0)),
        ("pyproject.toml", '[project]\ndependencies = ["numpy", "torch>=2.4,<2.7"]\n', (2, 6)),
        ("pyproject.toml", '[project.optional-dependencies]\ngpu = ["torch[opt]==2.5"]\n', (2, 5)),
        ("pyproject.toml", '[dependency-groups]\ndev = ["torch==2.6", {include-group = "x"}]\n', (2, 6)),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = "^2.2"\n', None),
        ("pyproject.toml", '[tool.poetry.dependencies]\ntorch = {version = "2.2.1", source = "x"}\n', (2, 2)),
        ("pyproject.toml", "[", None),
        ("pyproject.toml", 'project = 3\ntool = "x"\n', None),
        ("pyproject.toml", '[project]\ndependencies = "torch==2.0"\n', None),
        ("setup.py", 'setup(install_requires=["numpy", "torch==1.10"])\n', (1, 10)),
        ("setup.cfg", "[options]\ninstall_requires =\n    torch==1.11.*\n", (1, 11)),
    ],
)
def test_requirements(tmp_path, name, text, expected):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    assert of_project(tmp_path) == expected


def test_the_oldest_counts(tmp_path):
    (tmp_path / "requirements.txt").write_text("torch==2.4\n")
    (tmp_path / "setup.py").write_text('setup(install_requires=["torch==1.13"])\n')
    assert of_project(tmp_path) == (1, 13)
