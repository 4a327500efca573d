package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func archCalls(in *inside) {
	in.refused("iopl", call(unix.SYS_IOPL, 3), unix.EPERM)
	in.refused("ioperm", call(unix.SYS_IOPERM, 0, 1, 1), unix.EPERM)
	in.refused("modify_ldt", call(unix.SYS_MODIFY_LDT, 0, 0, 0), unix.EPERM)
	in.refused("x32 getpid", call(0x40000000|unix.SYS_GETPID), unix.ENOSYS)

	// getpid by the i386 convention: mov eax,20; int 0x80; mov [result],eax; ret. A kernel without it faults, which is fine too.
	code, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_ANON|unix.MAP_PRIVATE)
	in.done("map code", err)
	result := (*int32)(unsafe.Pointer(&code[2048]))
	copy(code, []byte{0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xa3})
	order.PutUint64(code[8:], uint64(uintptr(unsafe.Pointer(result))))
	code[16] = 0xc3
	entry := uintptr(unsafe.Pointer(&code[0]))
	at := &entry
	(*(*func())(unsafe.Pointer(&at)))()
	if *result > 0 {
		in.escaped("int 0x80 works: pid %d", *result)
	}
	fmt.Println("int 0x80:", unix.Errno(-*result))
}
