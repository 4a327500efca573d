package sandbox

// hostMain is this program as a host process that tests kill, stop or change.
func hostMain(args []string) {}
