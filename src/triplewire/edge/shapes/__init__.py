"""Shapes: what is published to a stream that has some is judged before it is stored."""
