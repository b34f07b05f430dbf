"""What stands outside of the store and defines tasks: loop files, found, read and switched where they lie."""
