"""Jelly: RDF in frames of protocol buffers, where terms are numbers in tables. A frame is a message."""

from triplewire.codec.jelly.reading import JellyCutter
from triplewire.codec.jelly.writing import MEDIA_TYPE, jelly_frame

__all__ = ["MEDIA_TYPE", "JellyCutter", "jelly_frame"]
