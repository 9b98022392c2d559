"""Benchmarks for asv, which compares versions of dpselect: ``doc/develop/benchmarks.rst``."""
