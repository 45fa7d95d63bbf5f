"""Parses its arguments."""

import argparse

parser = argparse.ArgumentParser(description="Trains nothing.")
parser.add_argument("--epochs", type=int, default=1, help="how often")
print(parser.parse_args())
