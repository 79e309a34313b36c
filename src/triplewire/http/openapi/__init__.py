"""What is served, said once: each handler names its operation; the door and the documents go by it."""

from triplewire.http.openapi.operations import Operation, operation_of, serves

__all__ = ["Operation", "operation_of", "serves"]
