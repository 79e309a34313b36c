"""Control: making, seeing and ending what stands in the registry."""

from triplewire.control.ontologies import Ontologies
from triplewire.control.routes import routes
from triplewire.control.subscriptions import Subscriptions, Wish

__all__ = ["Ontologies", "Subscriptions", "Wish", "routes"]
