"""Doors: what must be so before an edge is opened to others, looked at before anything starts."""

from __future__ import annotations

from pathlib import Path

from triplewire.certificates import Certificates
from triplewire.config import Settings


def certificates_of(settings: Settings) -> Certificates | None:
    """None where TLS is not asked for. Raises BadRequest for files that cannot be used."""
    if not settings.tls_certificate:
        return None
    return Certificates(Path(settings.tls_certificate), Path(settings.tls_key or settings.tls_certificate))
