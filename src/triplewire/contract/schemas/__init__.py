"""JSON schemas of what is sent and told, by name."""

from triplewire.contract.schemas.all import SCHEMAS
from triplewire.contract.schemas.forms import Schema, ref

__all__ = ["SCHEMAS", "Schema", "ref"]
