"""Sheets: the OpenAPI document as a page for people. It needs no script and nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Triplewire</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
code { font: 13px ui-monospace, monospace }
summary { cursor: pointer; padding: .2rem 0 } summary b { display: inline-block; min-width: 4.5rem }
details { border-bottom: 1px solid #8884 } details > div { margin: 0 0 1rem 4.5rem }
td { padding: 0 1rem 0 0; vertical-align: top }
</style>
"""


def sheet(document: Mapping[str, Any]) -> str:
    """A line for each operation, which opens to tell the rest."""
    info = document["info"]
    return "".join((
        _HEAD,
        f"<h1>{escape(info['title'])} {escape(info['version'])}</h1>\n<p>{escape(info['summary'])} ",
        'For machines: <a href="openapi.json">openapi.json</a>, <a href="asyncapi.json">asyncapi.json</a>.</p>\n',
        *_operations(document["paths"]),
    ))  # fmt: skip


def _operations(paths: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in paths.items():
        for method, operation in methods.items():
            head = f"<b>{method.upper()}</b> <code>{escape(path)}</code> {escape(operation['summary'])}"
            yield f'<details id="{operation["operationId"]}"><summary>{head}</summary><div>'
            yield f"<p>{escape(operation.get('description', ''))}</p>"
            yield _table("takes", ((each["name"], each["description"]) for each in operation.get("parameters", ())))
            yield _table("a body of", ((type, "") for type in operation.get("requestBody", {}).get("content", {})))
            answers = operation["responses"].items()
            yield _table("answers", ((status, _answer(told)) for status, told in answers))
            yield "</div></details>\n"


def _answer(told: Mapping[str, Any]) -> str:
    types = ", ".join(told.get("content", {}))
    return f"{told['description']}{': ' + types if types else ''}"


def _table(title: str, rows: Iterator[tuple[str, str]]) -> str:
    told = "".join(f"<tr><td><code>{escape(name)}</code><td>{escape(text)}" for name, text in rows)
    return f"<h4>{title}</h4><table>{told}</table>" if told else ""
