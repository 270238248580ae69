package image

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A page that a guest has written to became the space's own. To go back to the
// image such a page is either given back to the kernel, and then the next
// write to it costs a fault, or the image is copied over it, which costs less
// and keeps the page. A guest writes to much the same pages in every call, so
// those that the kernel names as the space's own are copied. Once there are
// more than keepPages all are given back, and it begins anew.
const keepPages = 256

func (m *mapped) reset(c content) error {
	f := c.(*file)
	if len(f.bytes) == 0 {
		return nil
	}
	own := regions.Get().(*[keepPages]region)
	defer regions.Put(own)
	n, bytes, known := m.scan(own, uint64(len(f.bytes)))
	if !known {
		m.kept = 0
		return os.NewSyscallError("madvise", unix.Madvise(m.reserved[:roundUp(uint64(len(f.bytes)))], unix.MADV_DONTNEED))
	}
	m.kept = bytes
	for _, r := range own[:n] {
		from := r.start - m.base()
		copy(m.reserved[from:min(r.end-m.base(), uint64(len(f.bytes)))], f.bytes[from:])
	}
	return nil
}

func (m *mapped) base() uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(m.reserved)))) }

// region and query are page_region and pm_scan_arg of linux/fs.h.
type region struct{ start, end, categories uint64 }

type query struct {
	size, flags              uint64
	start, end, walkEnd      uint64
	regions, regionCount     uint64
	maxPages                 uint64
	inverted, all, any, tell uint64
}

const (
	pagemapScan = 0xc0606610 // _IOWR('f', 16, struct pm_scan_arg)

	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
)

var regions = sync.Pool{New: func() any { return new([keepPages]region) }}

// pagemap is where the kernel tells about the pages of this process. Kernels
// before 6.7 do not.
var pagemap = sync.OnceValues(func() (*os.File, error) { return os.Open("/proc/self/pagemap") })

// scan finds the pages of the first bytes that are the space's own. It does
// not know them where there are more than keepPages or the kernel does not
// tell.
func (m *mapped) scan(own *[keepPages]region, size uint64) (n int, bytes uint64, known bool) {
	f, err := pagemap()
	if err != nil {
		return 0, 0, false
	}
	q := &query{
		start: m.base(), end: m.base() + roundUp(size),
		regions: uint64(uintptr(unsafe.Pointer(own))), regionCount: keepPages,
		maxPages: keepPages + 1,
		// Present or swapped, and not of the file.
		inverted: pageIsFile, all: pageIsFile, any: pageIsPresent | pageIsSwapped, tell: pageIsFile,
	}
	q.size = uint64(unsafe.Sizeof(*q))
	found, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), pagemapScan, uintptr(unsafe.Pointer(q)))
	if errno != 0 || q.walkEnd < q.end {
		return 0, 0, false
	}
	for _, r := range own[:found] {
		bytes += r.end - r.start
	}
	return int(found), bytes, bytes <= keepPages*pageSize
}
