"""Changes of the site: patches planned as data, and the guard through which they are applied."""
