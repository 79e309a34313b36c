"""What the paper on Ztreamy says of figures 3 to 6, as far as its text gives numbers; its curves are only pictures.

J. Arias Fisteus, N. Fernández García, L. Sánchez Fernández, D. Fuentes-Lorenzo, *Ztreamy: A middleware for publishing
semantic streams on the Web*, Journal of Web Semantics, 2014; section 4. One server was a core of an Intel Core i7 at
2.8 GHz; clients were on four other machines. Posts had 881 bytes on average.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Said:
    """One statement: of which figure, about which system at how many clients and items a second."""

    figure: str
    system: str
    clients: int
    rate: float
    says: str
    p50_ms: float | None = None
    """Median delay; the text says that it was below."""
    cpu_percent: float | None = None
    """Of one core."""
    lost_percent: float | None = None


SAID = (
    Said("3a, 3c, 5", "Ztreamy", 40_000, 4, "less than 3 s median delay, around 90 % of CPU use", 3_000, 90),
    Said("3a, 3c, 4a", "ZeroMQ", 8_000, 4, "until then better than all others; there it saturated the network"),
    Said("4a", "ZeroMQ", 12_000, 4, "about 8 % not delivered a minute after the last item", lost_percent=8),
    Said("3c", "LSM", 2_000, 4, "high delays beyond"),
    Said("4a", "LSM", 5_000, 4, "loses data beyond"),
    Said("4a", "Dataturbine", 700, 4, "3 % lost, high delays", lost_percent=3),
    Said("3a", "Faye", 700, 4, "crashes beyond"),
    Said("3b, 3d", "Ztreamy", 500, 250, "5 s delay, less than 25 % of CPU use", 5_000, 25),
    Said("4b", "ZeroMQ", 500, 80, "6 % lost", lost_percent=6),
    Said("4b", "Dataturbine", 500, 30, "2.5 % lost", lost_percent=2.5),
    Said("3d", "LSM", 500, 25, "high delays beyond"),
    Said("5", "Ztreamy, 3 servers", 40_000, 4, "delays stable and lower for larger amounts of clients"),
    Said("6", "Ztreamy", 8_000, 20, "without buffering the server would be in extreme saturation"),
)

TRAFFIC_SHARE = 0.15
"""To which compression reduced what was sent, with a buffer of half a second (section 4.3)."""

BUFFER = 0.5
ITEM_BYTES = 881
