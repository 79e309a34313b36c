"""Matching: subscriptions against events, a whole batch at a time."""

from triplewire.matching.evaluator import Evaluator
from triplewire.matching.results import expand_bindings
from triplewire.matching.shapes import LiftedShape, Shape, lift

__all__ = ["Evaluator", "LiftedShape", "Shape", "expand_bindings", "lift"]
