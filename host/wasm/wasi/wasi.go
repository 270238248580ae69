// Package wasi is what a guest may use of WASI preview 1: the clock, random
// numbers, output, exit and yield. There are no arguments, no environment, no
// files, no sockets, and nothing that sleeps. Every function is there, so that
// what stock toolchains link loads; the ones that need what is not there say so
// with an errno.
//
// It knows a guest's memory and nothing of the engine.
package wasi

import (
	"fmt"
	"io"

	"github.com/hookhost/hookhost/abi"
)

// Module is the name that guests import from.
const Module = "wasi_snapshot_preview1"

// Host is what stands behind the functions during one call of a guest.
type Host struct {
	// Output takes what the guest writes to its standard output and error.
	Output io.Writer
	// Charge is told the number of bytes, at most 64 KiB at a time, before they
	// are taken or made. It may panic to end the call. Nil is no charge.
	Charge func(bytes int)
}

func (h *Host) charge(bytes int) {
	if h.Charge != nil {
		h.Charge(bytes)
	}
}

// Memory is a guest's linear memory. Read gives a view of it, which writes
// through, or false where the range is not inside.
type Memory interface {
	Read(offset, n uint32) ([]byte, bool)
}

// Function is one import.
type Function struct {
	Name            string
	Params, Results []abi.Type
	// Call takes the arguments from the stack and leaves the result there,
	// which is an errno. Whatever a guest passes it does not panic, save for
	// proc_exit, whose way to end the guest it is, with an *Exit.
	Call func(h *Host, m Memory, stack []uint64)
}

// Exit is what proc_exit panics with.
type Exit struct{ Code uint32 }

func (e *Exit) Error() string { return fmt.Sprintf("exited with code %d", e.Code) }

// errno is a number of WASI's list.
type errno uint32

const (
	ok        errno = 0
	badFile   errno = 8  // EBADF
	fault     errno = 21 // EFAULT: a pointer that is not inside the memory
	invalid   errno = 28 // EINVAL
	ioFailed  errno = 29 // EIO
	noSystem  errno = 52 // ENOSYS
	noSeeking errno = 70 // ESPIPE
)

// Functions lists all the functions of WASI preview 1.
func Functions() []Function {
	all := []Function{exit}
	for _, f := range table {
		all = append(all, Function{
			Name: f.name, Params: f.params, Results: []abi.Type{abi.I32},
			Call: func(h *Host, m Memory, stack []uint64) {
				stack[0] = uint64(f.run(h, guest{m}, stack))
			},
		})
	}
	return all
}

var exit = Function{
	Name: "proc_exit", Params: []abi.Type{abi.I32},
	Call: func(_ *Host, _ Memory, stack []uint64) { panic(&Exit{Code: uint32(stack[0])}) },
}

const i, l = abi.I32, abi.I64

var table = []struct {
	name   string
	params []abi.Type
	run    func(h *Host, m guest, args []uint64) errno
}{
	{"args_get", []abi.Type{i, i}, nothing},
	{"args_sizes_get", []abi.Type{i, i}, noneOfThem},
	{"environ_get", []abi.Type{i, i}, nothing},
	{"environ_sizes_get", []abi.Type{i, i}, noneOfThem},

	{"clock_res_get", []abi.Type{i, i}, clockResolution},
	{"clock_time_get", []abi.Type{i, l, i}, clockTime},
	{"random_get", []abi.Type{i, i}, random},
	{"sched_yield", nil, nothing},
	{"poll_oneoff", []abi.Type{i, i, i, i}, poll},
	{"proc_raise", []abi.Type{i}, notHere},

	{"fd_write", []abi.Type{i, i, i, i}, write},
	{"fd_read", []abi.Type{i, i, i, i}, read},
	{"fd_close", []abi.Type{i}, closeStream},
	{"fd_fdstat_get", []abi.Type{i, i}, describe},
	{"fd_seek", []abi.Type{i, l, i, i}, onlyFiles(noSeeking)},
	{"fd_tell", []abi.Type{i, i}, onlyFiles(noSeeking)},
	{"fd_pread", []abi.Type{i, i, i, l, i}, onlyFiles(noSeeking)},
	{"fd_pwrite", []abi.Type{i, i, i, l, i}, onlyFiles(noSeeking)},
	{"fd_advise", []abi.Type{i, l, l, i}, onlyFiles(noSystem)},
	{"fd_allocate", []abi.Type{i, l, l}, onlyFiles(noSystem)},
	{"fd_datasync", []abi.Type{i}, onlyFiles(noSystem)},
	{"fd_sync", []abi.Type{i}, onlyFiles(noSystem)},
	{"fd_fdstat_set_flags", []abi.Type{i, i}, onlyFiles(noSystem)},
	{"fd_fdstat_set_rights", []abi.Type{i, l, l}, onlyFiles(noSystem)},
	{"fd_filestat_get", []abi.Type{i, i}, onlyFiles(noSystem)},
	{"fd_filestat_set_size", []abi.Type{i, l}, onlyFiles(noSystem)},
	{"fd_filestat_set_times", []abi.Type{i, l, l, i}, onlyFiles(noSystem)},
	{"fd_renumber", []abi.Type{i, i}, onlyFiles(noSystem)},

	// No folder is open, which the first of these tells: what looks for
	// folders stops there.
	{"fd_prestat_get", []abi.Type{i, i}, noFile},
	{"fd_prestat_dir_name", []abi.Type{i, i, i}, noFile},
	{"fd_readdir", []abi.Type{i, i, i, l, i}, noFile},
	{"path_create_directory", []abi.Type{i, i, i}, noFile},
	{"path_filestat_get", []abi.Type{i, i, i, i, i}, noFile},
	{"path_filestat_set_times", []abi.Type{i, i, i, i, l, l, i}, noFile},
	{"path_link", []abi.Type{i, i, i, i, i, i, i}, noFile},
	{"path_open", []abi.Type{i, i, i, i, i, l, l, i, i}, noFile},
	{"path_readlink", []abi.Type{i, i, i, i, i, i}, noFile},
	{"path_remove_directory", []abi.Type{i, i, i}, noFile},
	{"path_rename", []abi.Type{i, i, i, i, i, i}, noFile},
	{"path_symlink", []abi.Type{i, i, i, i, i}, noFile},
	{"path_unlink_file", []abi.Type{i, i, i}, noFile},

	{"sock_accept", []abi.Type{i, i, i}, noFile},
	{"sock_recv", []abi.Type{i, i, i, i, i, i}, noFile},
	{"sock_send", []abi.Type{i, i, i, i, i}, noFile},
	{"sock_shutdown", []abi.Type{i, i}, noFile},
}

func nothing(*Host, guest, []uint64) errno { return ok }
func notHere(*Host, guest, []uint64) errno { return noSystem }
func noFile(*Host, guest, []uint64) errno  { return badFile }

// noneOfThem tells the number and the size of the arguments or the variables.
func noneOfThem(_ *Host, m guest, args []uint64) errno {
	count, err := m.out(args[0], 4)
	if err != ok {
		return err
	}
	size, err := m.out(args[1], 4)
	if err != ok {
		return err
	}
	clear(count)
	clear(size)
	return ok
}
