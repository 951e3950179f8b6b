"""What changes the site: patches planned as data, and the fence that lets them through."""
