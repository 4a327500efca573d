package sandbox

// archCalls: this architecture has none of its own that matters.
func archCalls(in *inside) {}
