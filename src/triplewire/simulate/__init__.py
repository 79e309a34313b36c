"""A smart city that publishes: deterministic sensors, days and incidents, and the questions one would ask it."""

from triplewire.simulate.cities import DISTRICTS, City
from triplewire.simulate.incidents import Incident, Trouble
from triplewire.simulate.scenarios import SCENARIOS, Scenario
from triplewire.simulate.sensors import Measure, Sensor

__all__ = [
    "DISTRICTS",
    "SCENARIOS",
    "City",
    "Incident",
    "Measure",
    "Scenario",
    "Sensor",
    "Trouble",
]
