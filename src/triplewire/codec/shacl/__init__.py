"""SHACL: shapes that the events of a stream are to conform to. The validator is loaded only in a process of its own."""

from triplewire.codec.shacl.drafts import drafted

__all__ = ["drafted"]
