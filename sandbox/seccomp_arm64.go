package sandbox

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// archDenied are calls that only this architecture has; it has none that matters.
var archDenied []uint32
