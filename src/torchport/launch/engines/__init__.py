"""Engines: each renders a plan as the command lines and files of one way to run it, and runs nothing.

An engine of ``torchport run`` is a frozen dataclass made of ``attached`` and ``options`` (see ``local.py``) with three
pure methods: ``processes(plan, folder, environ)`` is what is started on this machine, ``argv(plan)`` and
``variables(plan, folder, environ)`` are what a dry run shows of it. The rehearsal is one more engine, which is made of
other things.
"""

from torchport.launch.engines.local import Local

# By their name in --on, in the order that users see.
ENGINES = {"local": Local}
