"""The command ``dpselect``: its arguments, files, models, and output."""
