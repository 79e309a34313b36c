"""All schemas that have a name."""

from __future__ import annotations

from triplewire.contract.schemas.admitting import ADMITTING
from triplewire.contract.schemas.continuing import CONTINUING
from triplewire.contract.schemas.forms import Schema
from triplewire.contract.schemas.hooking import HOOKING
from triplewire.contract.schemas.publishing import PUBLISHING
from triplewire.contract.schemas.running import RUNNING
from triplewire.contract.schemas.shared import SHARED
from triplewire.contract.schemas.subscribing import SUBSCRIBING
from triplewire.contract.schemas.telling import MESSAGES, SAID

SCHEMAS: dict[str, Schema] = {
    **SHARED,
    **PUBLISHING,
    **SUBSCRIBING,
    **CONTINUING,
    **MESSAGES,
    **SAID,
    **RUNNING,
    **HOOKING,
    **ADMITTING,
}
