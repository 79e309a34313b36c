"""Drawings: what the plots of benchmarks have in common."""

from __future__ import annotations

from html import escape


def text(x: float, y: float, words: str, anchor: str, colour: str, size: int = 11) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}" font-size="{size}">{escape(words)}</text>'


def opened(width: int, height: int) -> str:
    """The beginning of an SVG file: a white sheet. `</svg>` ends it."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    )
