"""Conformance: the test suites of the W3C, run from their manifests, and a suite of our own for deployments."""
