"""Matching: subscriptions against events, a whole batch at a time."""

from triplewire.matching.evaluator import Evaluator
from triplewire.matching.expansion import bindings
from triplewire.matching.shapes import Lifted, Shape, lift

__all__ = ["Evaluator", "Lifted", "Shape", "bindings", "lift"]
