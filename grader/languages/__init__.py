"""What a submission may be written in: each folder reads, builds and explains sources of one language."""
