"""Reads standard input in three ways."""

import sys

name = input("name? ")
print(f"hello {name}")
print("line", repr(sys.stdin.readline()))
for line in sys.stdin:
    print("rest", line.rstrip())
input()
