"""The formats that answers come in, one module each: from record batches of terms to pieces of text."""

from triplewire.history.formats.negotiation import FORMATS, ResultFormat, choose_format, list_formats

__all__ = ["FORMATS", "ResultFormat", "choose_format", "list_formats"]
