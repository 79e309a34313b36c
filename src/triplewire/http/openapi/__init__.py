"""Operations of the API: handlers name theirs; routes, authentication and the API documents are derived from it."""

from triplewire.http.openapi.operations import Operation, operation_of, routes_of, serves

__all__ = ["Operation", "operation_of", "routes_of", "serves"]
