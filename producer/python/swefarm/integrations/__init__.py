"""Classes by which other projects' agent loops work in sandboxes of the farm. Each module needs the package that it is named after."""
