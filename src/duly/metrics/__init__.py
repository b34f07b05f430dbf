"""What is measured of a store and of who serves it, for other systems to look at."""
