# SPDX-License-Identifier: GPL-2.0
"""The parts of selftests/vm/run."""


class Trouble(Exception):
    """The runner cannot do its work; the text says how to help it."""
