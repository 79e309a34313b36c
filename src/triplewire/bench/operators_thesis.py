"""What ontological and bag operators cost in a knowledge-based network, for comparison.

D. H. Jones, *An approach to managed clustering for Knowledge-based Networks*, PhD thesis, Trinity College Dublin, 2013,
section 6.3.1, table 15: one broker, subscriptions that are all different, 300 publications that each match one of them;
milliseconds from publication to delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SIZES = (500, 1_000, 2_000, 3_000)


@dataclass(frozen=True)
class Row:
    """Mean and standard deviation at each size; None where the broker ran out of memory."""

    name: str
    figures: tuple[tuple[float, float] | None, ...]

    def mean(self, subscriptions: int) -> float | None:
        """None as well for a size that was not measured."""
        found = dict(zip(SIZES, self.figures, strict=True)).get(subscriptions)
        return found and found[0]


TABLE_15: Mapping[str, Row] = {
    "@*": Row("Ont Prop", ((94.76, 5.42), (185.28, 7.15), None, None)),
    "@=": Row("Is A", ((50.83, 12.37), (94.64, 20.03), (190.33, 42.35), (4319.39, 2235.37))),
    "@!=": Row("Is Not A", ((50.35, 24.76), (96.90, 40.4), (200.83, 104.91), (4349.53, 2078.71))),
    "#>": Row("Bag super", ((18.17, 6.3), (33.45, 8.56), (62.18, 11.86), (92.94, 16.34))),
    "@~": Row("Equivalent", ((17.94, 9.67), (32.77, 14.21), (61.76, 21.02), (90.46, 24.8))),
    "#<": Row("Bag sub", ((11.40, 2.9), (20.50, 3.95), (38.75, 4.87), (57.60, 5.52))),
    "#=": Row("Bag equal", ((9.10, 3.04), (15.98, 3.51), (30.98, 4.77), (43.57, 4.94))),
    "@!~": Row("Not equivalent", ((8.74, 4.92), (15.37, 6.72), (27.84, 9.78), (39.87, 11.83))),
    "@<": Row("Less specific", ((4.47, 2.99), (7.03, 3.46), (12.51, 3.88), (17.11, 4.24))),
    "@>": Row("More specific", ((4.32, 2.95), (7.61, 4.4), (11.83, 4.14), (16.96, 4.19))),
}
"""By the symbol of the operator, the most expensive first."""
