"""Classes with which agent loops of other projects work in sandboxes of the farm. Each module needs the package in its name."""
