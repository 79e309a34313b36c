"""Types of arrays that compiled code reads and writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Records = npt.NDArray[Any]
Int8 = npt.NDArray[np.int8]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
