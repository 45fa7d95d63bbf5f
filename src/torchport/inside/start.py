"""The first file that runs in the user's interpreter: ``python <private folder>/start.py spec.json``.

The private folder holds only what runs inside. It leads ``sys.path`` while that is loaded and is gone before the
user's code starts; a torchport that the user has installed is found as usual for everything else.
"""

import json
import os
import sys

_private = os.path.dirname(os.path.abspath(__file__))
if _private not in sys.path:  # python -P, PYTHONSAFEPATH
    sys.path.insert(0, _private)
with open(sys.argv.pop(1), encoding="utf-8") as _file:
    _spec = json.load(_file)

from torchport.inside import rehearsal  # noqa: E402  (the script's own folder is on sys.path by now)

sys.path[:] = [entry for entry in sys.path if entry != _private]
rehearsal.main(_spec, _private)
