"""A stand-in for the old gym API (reset gives the state, step four values) over gymnasium."""

import gymnasium


class _Old:
    def __init__(self, env):
        self._env = env
        env.reset(seed=0)  # scripts of that time rarely seed it, and runs are compared
        self.observation_space, self.action_space = env.observation_space, env.action_space

    def seed(self, seed):
        self._env.reset(seed=seed)

    @property
    def unwrapped(self):
        return self

    def __getattr__(self, name):
        return getattr(self._env.unwrapped, name)

    def render(self):
        pass

    def reset(self):
        return self._env.reset()[0]

    def step(self, action):
        state, reward, terminated, truncated, info = self._env.step(int(action))
        return state, reward, terminated or truncated, info


def make(name):
    return _Old(gymnasium.make(name.replace("-v0", "-v1")))
