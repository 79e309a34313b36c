"""Control: making, seeing and ending what stands in the registry."""

from triplewire.control.insights import Insights
from triplewire.control.ontologies import Ontologies
from triplewire.control.routes import routes
from triplewire.control.subscriptions import Subscriptions
from triplewire.control.wishes import Wish

__all__ = ["Insights", "Ontologies", "Subscriptions", "Wish", "routes"]
