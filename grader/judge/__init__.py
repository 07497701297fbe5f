"""The trusted side: numerics, timing, diagnosis and trust. It never loads a submission."""
