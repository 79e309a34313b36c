"""Publish an event, and find it with SPARQL over history once it is in the lake."""

import sys
import time

from triplewire.client import Client

QUERY = """
PREFIX tw: <https://triplewire.dev/ns#>
SELECT ?event ?level { GRAPH ?event { <http://example.org/history/river> <http://example.org/level> ?level } }
"""


def main(url: str) -> None:
    with Client(url) as broker:
        body = "<http://example.org/history/river> <http://example.org/level> 4.2 ."
        broker.publish("example-history", body, "text/turtle", id="http://example.org/history/event")
        rows = list(broker.rows(QUERY))
        while not rows:
            time.sleep(0.5)  # events reach the lake once a second
            rows = list(broker.rows(QUERY))
        for row in rows:
            print(row["event"]["value"], row["level"]["value"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8080")
