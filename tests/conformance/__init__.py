"""Conformance: the test suites of the W3C, run from their manifests."""
