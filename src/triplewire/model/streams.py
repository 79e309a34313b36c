"""Streams: what their names look like."""

from __future__ import annotations

import re

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._~-]*")
"""Nothing in a name ever needs to be escaped: it stands in addresses."""
