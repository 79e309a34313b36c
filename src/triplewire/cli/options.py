"""Options that several commands share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Optional

import typer

from triplewire.config import Settings
from triplewire.config.files import check_format
from triplewire.config.settings import LOG_FORMATS

Data = Annotated[
    Optional[Path],  # noqa: UP045 - typer reads the annotation
    typer.Option("--data", help="Directory that holds log, lake and checkpoints.", show_default="triplewire-data"),
]
Host = Annotated[Optional[str], typer.Option("--host", help="Address to listen on.", show_default="127.0.0.1")]  # noqa: UP045
Port = Annotated[Optional[int], typer.Option("--port", help="Port to listen on.", show_default="8080")]  # noqa: UP045
TlsCertificate = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--tls-certificate", help="File with a certificate and its chain (PEM): speak TLS alone."),
]
TlsKey = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--tls-key", help="File with its key (PEM); by default that of the certificate."),
]
Open = Annotated[
    bool, typer.Option("--open", help="Let everyone do everything, whatever the address. For networks that you trust.")
]
LogFormat = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--log-format", help="How logs are written: `text`, or `json` for an object on each line."),
]
Url = Annotated[str, typer.Option("--url", envvar="TRIPLEWIRE_URL", help="Address of the broker.", show_default=True)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

DEFAULT_URL = "http://localhost:8080"


def settings_of(data: Path | None, host: str | None = None, port: int | None = None, **others: str | None) -> Settings:
    """What the environment says, and the command line above it. `others` are fields of the settings."""
    given = {"data": data, "host": host, "port": port, **others}
    try:
        said = {key: value for key, value in given.items() if value is not None}
        return _checked(replace(Settings.from_environment(), **said))  # type: ignore[arg-type]
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error


def _checked(settings: Settings) -> Settings:
    if settings.log_format not in LOG_FORMATS:
        raise ValueError(f"the log format is {' or '.join(LOG_FORMATS)}, not {settings.log_format!r}")
    check_format(settings.data)
    return settings
