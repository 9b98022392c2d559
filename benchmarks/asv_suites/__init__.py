"""Benchmarks for asv, which follows one version of dpselect after another: see ``CONTRIBUTING.rst``."""
