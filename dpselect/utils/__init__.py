"""Utilities without privacy logic: validation, parameters, types and files."""
