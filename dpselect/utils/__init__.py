"""Validation, parameters, types and files: tools that know nothing of privacy."""
