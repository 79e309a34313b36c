"""Filters at the door: what a listener to a plain stream wants to hear of it."""

from triplewire.edge.sieves.filters import Filter, Filters
from triplewire.edge.sieves.parameters import sieve_of
from triplewire.edge.sieves.sieves import Sieve, Tap
from triplewire.edge.sieves.sifting import Sieves, Sifted

__all__ = ["Filter", "Filters", "Sieve", "Sieves", "Sifted", "Tap", "sieve_of"]
