"""Renderers of the record: each reads ``result.json`` and runs nothing."""
