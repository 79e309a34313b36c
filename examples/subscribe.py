"""Subscribe in SPARQL, publish two events, and print the notification of the one that matches."""

import sys

from triplewire.client import Client

WARM = """
PREFIX sosa: <http://www.w3.org/ns/sosa/>
SELECT ?sensor ?value {
  ?o sosa:madeBySensor ?sensor ; sosa:hasSimpleResult ?value
  FILTER(?value > 30)
}
"""

READINGS = """
@prefix sosa: <http://www.w3.org/ns/sosa/> .
@prefix : <http://example.org/subscribe/> .

:event-1 { :o-1 sosa:madeBySensor :cellar ;  sosa:hasSimpleResult 12.0 . }
:event-2 { :o-2 sosa:madeBySensor :kitchen ; sosa:hasSimpleResult 31.5 . }
"""


def main(url: str) -> None:
    with Client(url) as broker:
        subscription = broker.subscribe(WARM, kind="bindings", stream="example-subscribe")
        broker.publish("example-subscribe", READINGS, "application/trig")
        notification = next(iter(broker.notifications(subscription["id"])))
        for row in notification["results"]["results"]["bindings"]:
            print(row["sensor"]["value"], row["value"]["value"])
        broker.unsubscribe(subscription["id"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8080")
