"""Confining what nobody trusts: ``process`` and ``bubblewrap`` behind the protocol of ``sandbox.sandbox``."""
