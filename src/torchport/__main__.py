"""``python -m torchport``."""

from torchport.cli import main

main()
