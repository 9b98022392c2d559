"""The command ``dpselect``: arguments, files, models, and what is printed of them."""
