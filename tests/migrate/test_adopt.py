"""What becomes of recipes that cannot even be tried."""

from torchport.migrate.adopt import adopt
from torchport.migrate.loop import Migration
from torchport.migrate.recipe import Recipe
from torchport.migrate.tree import copy
from torchport.plan import Run
from torchport.record import Record


def never(*given):
    raise AssertionError("there is nothing to run")


def migrated(folder, **runs):
    for each in ("project", "copy"):
        (folder / each).mkdir()
    tree = copy(folder / "project", folder / "copy")
    return Migration(tree, tree.paths(), **runs)


def ended(code):
    return Run("", None, None, (Record("", {}, gpu_bytes=512, exit={"reason": "ended"}),), (), code, 0.0)


def test_a_package_that_is_missing(tmp_path):
    recipe = Recipe("curves", "", never, needs="tensorboard")
    done = migrated(tmp_path, last=ended(0), after=ended(0))
    (told,) = adopt(done, [recipe], "train.py", never, has=lambda package: package != "tensorboard")
    assert not told.applied and told.reason == "tensorboard is missing: pip install tensorboard"


def test_a_project_that_does_not_run_yet(tmp_path):
    (told,) = adopt(migrated(tmp_path), [Recipe("amp", "", never)], "train.py", never)
    assert told.reason == "first the project has to run on a GPU"
