"""Operations of the API: each handler names its own; authentication and the API documents are derived from it."""

from triplewire.http.openapi.operations import Operation, operation_of, serves

__all__ = ["Operation", "operation_of", "serves"]
