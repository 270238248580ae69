package image

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapped is a reserved range of addresses. It begins with what may be used,
// of which the image is mapped privately over the first part; the rest cannot
// be touched until the memory grows. Nothing ever moves.
type mapped struct {
	reserved []byte
	usable   uint64
	kept     uint64 // bytes of pages that are this space's own and were put back by copying
}

func newSpace(limit uint64) (space, error) {
	m, err := reserve(limit)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func reserve(limit uint64) (*mapped, error) {
	size := roundUp(max(limit, 1))
	at, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &mapped{reserved: unsafe.Slice((*byte)(at), size)}, nil
}

var pageSize = uint64(os.Getpagesize())

func roundUp(size uint64) uint64 { return (size + pageSize - 1) &^ (pageSize - 1) }

func (m *mapped) resize(size uint64) []byte {
	if usable := roundUp(size); usable > m.usable {
		if unix.Mprotect(m.reserved[m.usable:usable], unix.PROT_READ|unix.PROT_WRITE) != nil {
			return nil
		}
		m.usable = usable
	}
	return m.reserved[:size:size]
}

func (m *mapped) snapshot(size uint64) (content, error) {
	c, err := newFile(m.reserved[:size])
	if err != nil {
		return nil, err
	}
	if err := m.put(c); err != nil {
		c.free()
		return nil, err
	}
	return c, nil
}

// put maps a file over the first bytes.
func (m *mapped) put(c *file) error {
	if len(c.bytes) == 0 {
		return nil
	}
	_, err := unix.MmapPtr(c.fd, 0, unsafe.Pointer(unsafe.SliceData(m.reserved)), uintptr(roundUp(uint64(len(c.bytes)))),
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	m.usable = max(m.usable, roundUp(uint64(len(c.bytes))))
	return nil
}

func (m *mapped) held() uint64 { return m.kept }

func (m *mapped) free() {
	if m.reserved != nil {
		_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(m.reserved)), uintptr(len(m.reserved))) // a whole map of ours
	}
	m.reserved = nil
}

// file is the content of an image: a file in memory, and a view of it.
type file struct {
	fd    int
	bytes []byte
}

func newFile(memory []byte) (_ *file, err error) {
	fd, err := unix.MemfdCreate("hookhost-image", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := &file{fd: fd}
	defer func() {
		if err != nil {
			f.free()
		}
	}()
	if err := f.write(memory); err != nil {
		return nil, err
	}
	if len(memory) == 0 {
		return f, nil
	}
	at, err := unix.MmapPtr(fd, 0, nil, uintptr(len(memory)), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	f.bytes = unsafe.Slice((*byte)(at), len(memory))
	return f, nil
}

// write leaves out the pages that are zero, which stay holes, and seals the
// file: nothing can change an image.
func (f *file) write(memory []byte) error {
	if err := unix.Ftruncate(f.fd, int64(len(memory))); err != nil {
		return os.NewSyscallError("ftruncate", err)
	}
	zero := make([]byte, pageSize)
	for at := 0; at < len(memory); at += int(pageSize) {
		page := memory[at:min(at+int(pageSize), len(memory))]
		if bytes.Equal(page, zero[:len(page)]) {
			continue
		}
		if n, err := unix.Pwrite(f.fd, page, int64(at)); err != nil || n != len(page) {
			return fmt.Errorf("write: %w", errors.Join(err, fmt.Errorf("%d of %d bytes", n, len(page))))
		}
	}
	_, err := unix.FcntlInt(uintptr(f.fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE|unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	return os.NewSyscallError("fcntl", err)
}

func (f *file) newSpace(limit uint64) (space, error) {
	m, err := reserve(limit)
	if err != nil {
		return nil, err
	}
	if err := m.put(f); err != nil {
		m.free()
		return nil, err
	}
	return m, nil
}

func (f *file) free() {
	if f.bytes != nil {
		_ = unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(f.bytes)), uintptr(len(f.bytes)))
	}
	_ = unix.Close(f.fd)
	f.bytes = nil
}
