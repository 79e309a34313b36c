"""Native: Python that becomes machine code, and what such code is made of."""
