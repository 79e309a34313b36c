"""The formats that answers come in, one module each: from record batches of terms to pieces of text."""

from triplewire.query.formats.choices import FORMATS, Format, choose, formats_of

__all__ = ["FORMATS", "Format", "choose", "formats_of"]
