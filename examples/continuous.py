"""Register a query across events: which car passed both gates within ten minutes?"""

import sys

from triplewire.client import Client

BOTH_GATES = """
PREFIX : <http://example.org/continuous/>
SELECT ?car { :gate-1 :saw ?car . :gate-2 :saw ?car }
"""


def main(url: str) -> None:
    with Client(url) as broker:
        query = broker.register(BOTH_GATES, within=600)
        for gate in ("gate-1", "gate-2"):
            body = f"@prefix : <http://example.org/continuous/> . :{gate} :saw :car-7 ."
            broker.publish("example-continuous", body, "text/turtle")
        answer = next(iter(broker.answers(query["id"])))
        for row in answer["results"]["results"]["bindings"]:
            print(row["car"]["value"])
        broker.end_query(query["id"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://localhost:8080")
