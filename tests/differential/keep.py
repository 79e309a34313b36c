"""Keep a failing pair: `python -m tests.differential.keep NAME NOTE` takes the case that a failure prints and writes
it as a file, which from then on is run on every engine."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from tests.differential.cases import FOLDER, Case


def main() -> None:
    name, note = sys.argv[1:3]
    case = replace(Case.from_json(json.load(sys.stdin)), note=note)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(case.to_json(), indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
