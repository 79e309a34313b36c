"""The rules by which a query is rewritten before it is compiled."""

from triplewire.sparql.rules.folding import RULES, Rule, planned

__all__ = ["RULES", "Rule", "planned"]
