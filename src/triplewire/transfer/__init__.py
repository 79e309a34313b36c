"""In and out: events of the lake into files, and events of files into a broker."""
