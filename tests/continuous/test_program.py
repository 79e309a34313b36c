"""A program survives the file through which workers get it, with the very types that compiled code takes."""

from __future__ import annotations

import numpy as np

from tests.continuous.join_network.runs import Run
from tests.continuous.oracle import Asked
from triplewire.continuous.planner import NetworkProgram

QUERIES = [
    Asked((("?a", "<urn:p>", "?b"), ("?b", "<urn:q>", "?c")), "FILTER(?c > 3)", ("a", "c")),
    Asked((("?a", "<urn:p>", "<urn:x>"), ("?a", "?any", '"text"'))),
]


def test_a_program_is_read_as_it_was_written() -> None:
    program = Run(QUERIES).program
    found = NetworkProgram.from_bytes(program.to_bytes())
    assert (found.version, found.scopes, found.depth) == (program.version, program.scopes, program.depth)
    assert found.projections.projections == program.projections.projections
    written = {**program.plan._asdict(), "groups": program.projections.groups, "indexes": program.projections.indexes}
    read = {**found.plan._asdict(), "groups": found.projections.groups, "indexes": found.projections.indexes}
    for name, array in written.items():
        assert read[name].dtype == array.dtype, name
        assert read[name].dtype.isalignedstruct == array.dtype.isalignedstruct, name
        assert read[name].flags.writeable, name
        assert np.array_equal(read[name], array), name
