"""Submissions: find the files of one in a folder or an archive, and all of a class in a folder."""
