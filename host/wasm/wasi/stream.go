package wasi

const (
	stdin  = 0
	stdout = 1
	stderr = 2
)

func isStream(fd uint64) bool { return uint32(fd) <= stderr }

// maxWrite bounds what one fd_write takes. It says how much it took, and the
// guest goes on with the rest: that way even many buffers over the same large
// memory cost no more than what is charged for.
const maxWrite = 64 << 10

// write takes the guest's output. All its pointers are right before the first
// byte is taken.
func write(h *Host, m guest, args []uint64) errno {
	if fd := uint32(args[0]); fd != stdout && fd != stderr {
		return badFile
	}
	buffers, err := m.vectors(args[1], args[2])
	if err != ok {
		return err
	}
	taken, err := m.out(args[3], 4)
	if err != ok {
		return err
	}
	total := 0
	for _, b := range buffers {
		b = b[:min(len(b), maxWrite-total)]
		h.charge(len(b))
		if _, failed := h.Output.Write(b); failed != nil {
			return ioFailed
		}
		total += len(b)
	}
	little.PutUint32(taken, uint32(total))
	return ok
}

// read finds the input at its end.
func read(_ *Host, m guest, args []uint64) errno {
	if uint32(args[0]) != stdin {
		return badFile
	}
	if _, err := m.vectors(args[1], args[2]); err != ok {
		return err
	}
	n, err := m.out(args[3], 4)
	if err != ok {
		return err
	}
	clear(n)
	return ok
}

// closeStream does nothing: a stream has an end in the next call as well.
func closeStream(_ *Host, _ guest, args []uint64) errno {
	if !isStream(args[0]) {
		return badFile
	}
	return ok
}

// onlyFiles is for what a stream cannot do.
func onlyFiles(code errno) func(*Host, guest, []uint64) errno {
	return func(_ *Host, _ guest, args []uint64) errno {
		if !isStream(args[0]) {
			return badFile
		}
		return code
	}
}

// The record of fd_fdstat_get: the type in the first byte, the flags at 2, the
// rights at 8 and the inherited ones at 16.
const (
	statSize        = 24
	statRights      = 8
	characterDevice = 2
	rightRead       = 1 << 1
	rightWrite      = 1 << 6
)

// describe says that the streams are terminals: what is printed is then
// written line by line, and no half line waits in the guest for a call that
// does not see it.
func describe(_ *Host, m guest, args []uint64) errno {
	if !isStream(args[0]) {
		return badFile
	}
	stat, err := m.out(args[1], statSize)
	if err != ok {
		return err
	}
	clear(stat)
	stat[0] = characterDevice
	rights := uint64(rightWrite)
	if uint32(args[0]) == stdin {
		rights = rightRead
	}
	little.PutUint64(stat[statRights:], rights)
	return ok
}
