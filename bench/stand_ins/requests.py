"""A stand-in for requests without a network: ``get`` answers with ./<last part of the address>, a file."""

from pathlib import Path


class Response:
    def __init__(self, url):
        self.raw = Path(url.rsplit("/", 1)[-1]).open("rb")  # noqa: SIM115  (the caller reads it)
        self.text = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.raw.close()


def get(url, **_):
    return Response(url)
