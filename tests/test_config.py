"""[tool.torchport]: what it may say, and what is said of a mistake in it."""

import pytest

from torchport.config import Config, ConfigError, RunConfig, load


def write(folder, text):
    (folder / "pyproject.toml").write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Config()),
        ('[project]\nname = "x"\n', Config()),
        ('[tool.torchport]\ngpu = "l4"\ngpus = 2\n', Config(gpu="l4", gpus=2)),
        (
            '[tool.torchport]\npython = "env/bin/python"\nlang = "zh"\n',
            Config(python="env/bin/python", lang="zh"),
        ),
        (
            '[tool.torchport]\nentry = "train.py"\nselect = ["C1"]\n[tool.torchport.run]\nshm = "8g"\n',
            Config(select=("C1",), run=RunConfig(shm="8g")),
        ),
        (
            '[tool.torchport.run]\ndata = "data"\nports = [8888]\nenv = { EPOCHS = 3, MODE = "x" }\n',
            Config(run=RunConfig(data="data", ports=(8888,), env=(("EPOCHS", "3"), ("MODE", "x")))),
        ),
        ('[tool.torchport.mirrors]\npypi = "ustc"\n', Config(mirrors={"pypi": "ustc"})),
        (
            '[tool.torchport]\ntorch = "2.6"\nignore = []\nexclude = ["old"]\nbaseline = "known.json"\n',
            Config(torch="2.6", ignore=(), exclude=("old",), baseline="known.json"),
        ),
    ],
)
def test_load(tmp_path, text, expected):
    assert load(write(tmp_path, text)) == expected


def test_no_file_is_no_configuration(tmp_path):
    assert load(tmp_path) == Config()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[tool.torchport]\ngpu_s = 2\n", ["[tool.torchport]", "'gpu_s'", "did you mean gpus?"]),
        ("[tool.torchport]\nzzzzzz = 2\n", ["'zzzzzz'", "known are entry, python"]),
        ("[tool.torchport.image]\nbse = 'x'\n", ["[tool.torchport.image]", "'bse'", "did you mean base?"]),
        ('[tool.torchport]\ngpus = "2"\n', ["gpus = '2'", "a whole number"]),
        ("[tool.torchport]\ngpus = true\n", ["gpus = True", "a whole number"]),
        ("[tool.torchport]\ngpus = 0\n", ["gpus = 0", "at least one"]),
        ('[tool.torchport]\nlang = "fr"\n', ["lang = 'fr'", "en, zh"]),
        ('[tool.torchport]\nselect = "C1"\n', ["select = 'C1'", "a list"]),
        ("[tool.torchport]\nignore = [101]\n", ["ignore = [101]", "a list of texts"]),
        ("[tool.torchport.run]\nports = [0]\n", ["ports = [0]", "from 1 to 65535"]),
        ("[tool.torchport.run.env]\nX = true\n", ["env.X = True", "a text"]),
        ("[tool]\ntorchport = 3\n", ["[tool.torchport] is 3"]),
        ("[tool.torchport\n", ["pyproject.toml", "line 1"]),
    ],
)
def test_mistakes_are_named(tmp_path, text, words):
    with pytest.raises(ConfigError) as caught:
        load(write(tmp_path, text))
    for word in words:
        assert word in str(caught.value)
