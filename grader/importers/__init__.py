"""Makes assignments from folders of other projects."""
