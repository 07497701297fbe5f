"""Looks for cases that follow a submission's own code: its branches, and the numbers that it compares with.

``search`` keeps what cases have reached and proposes further ones, ``quantities`` finds what a number in the
code has to do with the sizes of a case, and ``literals`` reads the numbers of a source.
"""
