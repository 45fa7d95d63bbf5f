"""A stand-in for gym since 0.26 (reset gives state and info, step five values) over gymnasium."""

import gymnasium
from gymnasium import *  # noqa: F403


def make(name, *, autoreset=False, **options):
    env = gymnasium.make(name, **options)
    env.reset(seed=0)  # scripts rarely seed it, and runs are compared
    return env
