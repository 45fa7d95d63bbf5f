"""The first file that runs in the user's interpreter: ``python <private folder>/start.py spec.json``.

The private folder holds only what runs inside. It leads ``sys.path`` while that is loaded and is gone before the
user's code starts; a torchport that the user has installed is found as usual for everything else.
"""

import json
import sys

_private = sys.path[0]
with open(sys.argv.pop(1), encoding="utf-8") as _file:
    _spec = json.load(_file)

from torchport.inside import rehearsal  # noqa: E402  (the script's own folder is on sys.path by now)

sys.path.remove(_private)
rehearsal.main(_spec, _private)
