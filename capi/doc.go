// Command capi is libprovegym.so: the C interface of include/provegym.h over the Go packages. It decodes, calls and encodes;
// what a method means stands in the package that it calls.
//
//	caller -> fork.c (pgym_*: refuses in a forked child) -> pgymi_* here -> gym/vector, or the table of request.go
//
// # Rules at the border
//
// Ownership: the caller owns every buffer that it passes, and the vector keeps those of pgym_vec_bind until the next bind or
// close. No Go pointer crosses: text blocks and answers live in C memory. A handle is a slot with a generation (handle.go), so
// one that was closed is PGYM_E_HANDLE. One thread a handle: the second gets PGYM_E_BUSY; close waits instead.
// Every export recovers: a panic of ours is PGYM_E_PANIC with the place. Nothing installs a signal handler.
//
// # Versions
//
// fork.c compiles against include/provegym.h, so a function that drifts from the header does not compile. pgym_build_info
// answers the hash of the header and of the Go sources that the library was built from; tests refuse a stale one. Go's build
// cache does not see include/, so the header's hash goes in by a flag; HASH is of the sources, as setup.py computes it. To
// build by hand, from the repository's root:
//
//	export CGO_CFLAGS="-g -O2 -DPGYM_HEADER_SHA256=$(sha256sum include/provegym.h | cut -d' ' -f1)"
//	go build -tags sqlite_omit_load_extension,sqlite_preupdate_hook -trimpath -buildvcs=false -buildmode=c-shared \
//	  -ldflags "-s -w -linkmode external -X main.sources=HASH \
//	    -extldflags '-Wl,-z,defs -Wl,-soname,libprovegym.so -Wl,--version-script=$PWD/capi/exports.map -static-libgcc'" \
//	  -o build/libprovegym.so ./capi
//
// Reading order: fork.c, border, handle, vec, request, then one file a noun: packs, split, trace, breaker, curriculum, prove,
// rollout, check.
package main
