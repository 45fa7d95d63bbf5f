"""Frame: the names of one running function or module."""

from __future__ import annotations

from torchport.check.flow.values import Value
from torchport.check.source import Source

Environment = dict[str, Value]


class Frame:
    """One running function or module: its file, its names, what it has returned."""

    def __init__(self, source: Source, names: Environment, around: Frame | None = None, depth: int = 0) -> None:
        self.source = source
        self.names = names
        self.around = around
        self.depth = depth
        self.returned: list[Value] = []

    def look_up(self, name: str) -> Value | None:
        frame: Frame | None = self
        while frame is not None:
            if name in frame.names:
                return frame.names[name]
            frame = frame.around
        return None
