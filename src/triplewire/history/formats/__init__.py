"""Result formats: from record batches of terms to text in JSON, XML, CSV, TSV or an RDF syntax."""

from triplewire.history.formats.negotiation import FORMATS, ResultFormat, choose_format

__all__ = ["FORMATS", "ResultFormat", "choose_format"]
