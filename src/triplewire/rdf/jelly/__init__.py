"""Jelly: RDF in frames of protocol buffers, where terms are numbers in tables. A frame is a message."""

from triplewire.rdf.jelly.frames import MEDIA_TYPE, JellySplitter, encode_frame

__all__ = ["MEDIA_TYPE", "JellySplitter", "encode_frame"]
