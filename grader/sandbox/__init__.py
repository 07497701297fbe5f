"""Sandboxes for untrusted code: ``docker``, ``bubblewrap`` and ``process`` behind one protocol."""
