"""Who may do what: verbs, grants, and those who hold them."""

from triplewire.access.grants import Grant
from triplewire.access.principals import EVERYONE, Principal
from triplewire.access.verbs import Verb

__all__ = ["EVERYONE", "Grant", "Principal", "Verb"]
