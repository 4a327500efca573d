package sandbox

import "time"

// Spec says what a box may use. The zero value is valid and the most closed: small limits, no network. A limit of 0 means the
// default given beside it; there is no "unlimited".
type Spec struct {
	WallTimeout    time.Duration // of each command; default 10 s
	CPUTime        time.Duration // of each command, all its processes together, system time included; default WallTimeout
	CPUMilli       int           // thousandths of one processor that the box may use at any time; default 1000
	MemoryBytes    int64         // of all processes and files of the box together; default 256 MiB, at least 4 MiB
	PidsMax        int           // processes and threads at a time, init not counted; default 32
	DiskBytes      int64         // of all files in /work, /tmp and /dev/shm together; default 16 MiB
	DiskFiles      int           // files and directories there; default 1024
	OpenFiles      int           // descriptors of one process; default 64
	OutputBytes    int64         // kept of stdout, and as much of stderr; default 64 KiB
	OutputMaxBytes int64         // written to stdout, or to stderr, before the command is ended; default 4 × OutputBytes
	Loopback       bool          // bring up 127.0.0.1; there is no other network
}

// Defaults of Spec, and the bounds that Validate holds it to.
const (
	DefaultWallTimeout = 10 * time.Second
	DefaultCPUMilli    = 1000
	DefaultMemoryBytes = 256 << 20
	DefaultPidsMax     = 32
	DefaultDiskBytes   = 16 << 20
	DefaultDiskFiles   = 1024
	DefaultOpenFiles   = 64
	DefaultOutputBytes = 64 << 10

	MaxWallTimeout = 24 * time.Hour
	MinMemoryBytes = 4 << 20
	MaxBytes       = 1 << 40 // of memory or disk
	MaxPids        = 1 << 15
	MaxDiskFiles   = 1 << 20
	MaxOpenFiles   = 1 << 16
	MaxOutputBytes = 1 << 30
)

// withDefaults fills in what is 0.
func (s Spec) withDefaults() Spec {
	def(&s.WallTimeout, DefaultWallTimeout)
	def(&s.CPUTime, s.WallTimeout)
	def(&s.CPUMilli, DefaultCPUMilli)
	def(&s.MemoryBytes, DefaultMemoryBytes)
	def(&s.PidsMax, DefaultPidsMax)
	def(&s.DiskBytes, DefaultDiskBytes)
	def(&s.DiskFiles, DefaultDiskFiles)
	def(&s.OpenFiles, DefaultOpenFiles)
	def(&s.OutputBytes, DefaultOutputBytes)
	def(&s.OutputMaxBytes, 4*s.OutputBytes)
	return s
}

func def[T comparable](at *T, value T) {
	var zero T
	if *at == zero {
		*at = value
	}
}

// Command is what to run in a box.
type Command struct {
	Argv  []string // Argv[0] is a path, or a name that is looked for in the PATH of Env
	Env   []string // NAME=value; nil means DefaultEnv, and nothing of the host's environment is ever added
	Dir   string   // "" means /work
	Stdin []byte   // nil is an empty input

	// WallTimeout, if not 0, is used instead of the box's; it may only be shorter.
	WallTimeout time.Duration
}

// DefaultEnv is the environment of commands that name none.
var DefaultEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/work", "USER=agent", "LANG=C.UTF-8", "TERM=dumb"}

// MaxCommandBytes bounds arguments, environment and directory of a command together: they travel in one message. Larger input
// goes by Stdin or WriteFile. MaxStrings bounds their number.
const (
	MaxCommandBytes = 96 << 10
	MaxStrings      = 1000
)
