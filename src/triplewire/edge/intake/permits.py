"""Permits: what of a body may be published, by the policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from triplewire.access import Permit
from triplewire.edge.intake.parcels import Parcel, parted
from triplewire.model.errors import Forbidden
from triplewire.storage.log.ports import Publication


def permitted(parcels: Sequence[Parcel], permit: Permit) -> list[Parcel]:
    """The parcels; in the place of one with an event that must not be published is why."""
    return [_permitted(each, permit) for each in parted(parcels)]


def _ensure_permitted(publication: Publication, permit: Permit) -> None:
    """Raises Forbidden for the first event that must not be published, with the rule that says so."""
    streams = publication.stream
    of_each = [streams] * len(publication.events) if isinstance(streams, str) else streams
    for stream, event in zip(of_each, publication.events, strict=True):
        refusal = permit.refusal(stream, event.id, event.text)
        if refusal is not None:
            raise Forbidden(refusal)


def _permitted(parcel: Parcel, permit: Permit) -> Parcel:
    if parcel.publication is None:
        return parcel
    try:
        _ensure_permitted(parcel.publication, permit)
    except Forbidden as error:
        return replace(parcel, found=error)
    return parcel
