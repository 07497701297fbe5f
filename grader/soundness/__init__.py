"""Is an assignment sound: can right kernels pass it, and can wrong ones not?"""
