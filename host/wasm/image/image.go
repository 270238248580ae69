// Package image keeps what a guest's memory holds, and makes memories that
// begin with it and are put back to it. On Linux a memory is a private map of
// the image, so that it costs the pages that its guest wrote to; elsewhere it
// is a full copy.
//
// Nothing here has a finalizer: every memory is freed and every image closed
// by its owner.
package image

import (
	"fmt"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// Memory is the linear memory of one instance. It grows up to its limit and
// remembers when it was asked for more. It serves one goroutine.
type Memory struct {
	limit   uint64
	bytes   []byte
	refused bool
	space   space
	image   *Image // what Reset goes back to; nil before Snapshot
}

var _ experimental.LinearMemory = (*Memory)(nil)

// space is where the bytes of a memory are.
type space interface {
	// resize gives the first size bytes, those that are new being zero, or nil
	// where that cannot be. What it gave before is not used any more.
	resize(size uint64) []byte
	// snapshot keeps the first size bytes and goes on as a map of them.
	snapshot(size uint64) (content, error)
	// reset puts the first bytes back to the content, which the space is a map
	// of.
	reset(content) error
	// held is how many bytes of the machine's memory the space has to itself.
	held() uint64
	free()
}

// content is what an image holds.
type content interface {
	newSpace(limit uint64) (space, error)
	free()
}

// New makes an empty memory that may grow to limit bytes.
func New(limit uint64) (*Memory, error) {
	s, err := newSpace(limit)
	if err != nil {
		return nil, fmt.Errorf("memory of up to %d bytes: %w", limit, err)
	}
	return &Memory{limit: limit, bytes: []byte{}, space: s}, nil
}

// NewCopied is New on the way that all platforms have: with full copies.
func NewCopied(limit uint64) (*Memory, error) {
	return &Memory{limit: limit, bytes: []byte{}, space: &copied{limit: limit}}, nil
}

// Reallocate gives nil over the limit, which the guest sees as a memory.grow
// that failed. A memory of an image has the image's size from the beginning,
// however little is asked for.
func (m *Memory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.refused = true
		return nil
	}
	if size <= uint64(len(m.bytes)) {
		return m.bytes
	}
	grown := m.space.resize(size)
	if grown == nil {
		m.refused = true
		return nil
	}
	m.bytes = grown
	return grown
}

// Allocate makes it the memory of an instance: an instance has one.
func (m *Memory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Begin forgets what was refused before.
func (m *Memory) Begin() { m.refused = false }

// Refused reports whether the memory was asked for more than it may have
// since Begin.
func (m *Memory) Refused() bool { return m.refused }

// Grown reports whether the memory is larger than its image. Such a one
// cannot be put back: memories do not shrink.
func (m *Memory) Grown() bool { return m.image == nil || uint64(len(m.bytes)) > m.image.size }

// Held is how many bytes of the machine's memory this one has to itself, as
// far as is known since the last Reset.
func (m *Memory) Held() uint64 { return m.space.held() }

// Snapshot makes an image of what the memory holds, which the memory itself
// is then put back to.
func (m *Memory) Snapshot() (*Image, error) {
	size := uint64(len(m.bytes))
	c, err := m.space.snapshot(size)
	if err != nil {
		return nil, fmt.Errorf("image of %d bytes: %w", size, err)
	}
	i := &Image{size: size, content: c}
	i.users.Store(1)
	m.image = i.use()
	return i, nil
}

// Reset puts the memory back to its image. After an error it must not be used
// again.
func (m *Memory) Reset() error {
	if m.Grown() {
		return fmt.Errorf("memory of %d bytes has no image of its size", len(m.bytes))
	}
	return m.space.reset(m.image.content)
}

// Free lets go of the memory.
func (m *Memory) Free() {
	if m.space == nil {
		return
	}
	m.space.free()
	m.space, m.bytes = nil, nil
	if m.image != nil {
		m.image.Close()
	}
}

// Image is what the memories of it begin with.
type Image struct {
	size    uint64
	content content
	users   atomic.Int64 // the owner, and every memory
}

// Size is how many bytes the image has.
func (i *Image) Size() uint64 { return i.size }

// New makes a memory that begins as the image and may grow to limit bytes.
func (i *Image) New(limit uint64) (*Memory, error) {
	s, err := i.content.newSpace(max(limit, i.size))
	if err != nil {
		return nil, fmt.Errorf("memory of an image of %d bytes: %w", i.size, err)
	}
	return &Memory{limit: limit, bytes: s.resize(i.size), space: s, image: i.use()}, nil
}

func (i *Image) use() *Image {
	i.users.Add(1)
	return i
}

// Close lets go of the image. It is gone when its last memory is.
func (i *Image) Close() {
	if i.users.Add(-1) == 0 {
		i.content.free()
	}
}
