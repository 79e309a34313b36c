"""The harness of one target: `python -m fuzz.harness TARGET [options of libFuzzer] [corpus]`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import atheris  # type: ignore[import-untyped]

from triplewire.model.errors import InputError

LANGUAGES = ("sparql", "filters", "policies")


def main() -> None:
    name, *options = sys.argv[1:]
    # What is instrumented takes long to import: only what the target needs.
    with atheris.instrument_imports(include=["triplewire", "fuzz"]):
        module = import_module("fuzz.languages" if name in LANGUAGES else "fuzz.codecs")
    targets, seeds = module.TARGETS, module.SEEDS
    corpus = next((Path(each) for each in options if not each.startswith("-")), None)
    if corpus is not None:
        for number, seed in enumerate(seeds.get(name, ())):
            (corpus / f"seed-{number}").write_bytes(seed)
    target = targets[name]

    def once(data: bytes) -> None:
        try:
            target(data)
        except InputError:
            return

    atheris.Setup([sys.argv[0], *options], once)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
