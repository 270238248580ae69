package image

import (
	"bytes"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const wasmPage = 64 << 10

var kinds = map[string]func(uint64) (*Memory, error){"mapped": New, "copied": NewCopied}

// eachKind runs a test for what this platform has and for what all have.
func eachKind(t *testing.T, test func(t *testing.T, create func(limit uint64) *Memory)) {
	for name, create := range kinds {
		t.Run(name, func(t *testing.T) {
			test(t, func(limit uint64) *Memory {
				m, err := create(limit)
				require.NoError(t, err)
				t.Cleanup(m.Free)
				return m
			})
		})
	}
}

func snapshot(t *testing.T, m *Memory) *Image {
	i, err := m.Snapshot()
	require.NoError(t, err)
	t.Cleanup(i.Close)
	return i
}

func TestMemoryGrowsToItsLimitAndRemembersMore(t *testing.T) {
	eachKind(t, func(t *testing.T, create func(uint64) *Memory) {
		m := create(3 * wasmPage)
		first := m.Reallocate(wasmPage)
		require.Len(t, first, wasmPage)
		first[wasmPage-1] = 7
		grown := m.Reallocate(3 * wasmPage)
		require.Len(t, grown, 3*wasmPage)
		assert.EqualValues(t, 7, grown[wasmPage-1], "what was there stays")
		assert.Equal(t, make([]byte, 2*wasmPage), grown[wasmPage:], "what is new is zero")
		assert.False(t, m.Refused())

		assert.Nil(t, m.Reallocate(4*wasmPage))
		assert.True(t, m.Refused())
		m.Begin()
		assert.False(t, m.Refused())
	})
}

func TestEveryMemoryOfAnImageBeginsWithIt(t *testing.T) {
	eachKind(t, func(t *testing.T, create func(uint64) *Memory) {
		first := create(8 * wasmPage)
		copy(first.Reallocate(2 * wasmPage)[wasmPage-2:], "image")
		i := snapshot(t, first)
		want := bytes.Clone(first.Reallocate(2 * wasmPage))

		a, err := i.New(8 * wasmPage)
		require.NoError(t, err)
		defer a.Free()
		b, err := i.New(8 * wasmPage)
		require.NoError(t, err)
		defer b.Free()
		assert.Equal(t, want, a.Reallocate(2*wasmPage))
		copy(a.Reallocate(2 * wasmPage)[wasmPage:], "secret")
		copy(first.Reallocate(2 * wasmPage)[10:], "other")
		assert.Equal(t, want, b.Reallocate(2*wasmPage), "nobody sees what another wrote")

		require.NoError(t, a.Reset())
		require.NoError(t, first.Reset())
		assert.Equal(t, want, a.Reallocate(2*wasmPage))
		assert.Equal(t, want, first.Reallocate(2*wasmPage))
	})
}

func TestResetPutsEveryByteBack(t *testing.T) {
	eachKind(t, func(t *testing.T, create func(uint64) *Memory) {
		random := rand.New(rand.NewPCG(1, 2))
		const size = 32 * wasmPage
		m := create(64 * wasmPage)
		memory := m.Reallocate(size)
		for at := range memory {
			if at/5000%3 != 0 { // pages of zeros between
				memory[at] = byte(random.Uint32())
			}
		}
		want := bytes.Clone(memory)
		snapshot(t, m)
		for range 200 {
			for range random.IntN(2 * size / 4096) { // more pages than are kept, at times
				at := random.IntN(size)
				copy(memory[at:], "written")
			}
			if random.IntN(8) == 0 {
				from := random.IntN(size)
				clear(memory[from:])
			}
			require.NoError(t, m.Reset())
			require.True(t, bytes.Equal(want, memory))
		}
	})
}

// Every second page is a region of its own: of so many the kernel names only
// those that it has room for, and its walk ends before the memory does.
func TestResetPutsBackMorePagesApartThanTheKernelNames(t *testing.T) {
	eachKind(t, func(t *testing.T, create func(uint64) *Memory) {
		const pages, page = 2048, 4096
		m := create(pages * page)
		memory := m.Reallocate(pages * page)
		for at := range memory {
			memory[at] = byte(at/page + at)
		}
		want := bytes.Clone(memory)
		snapshot(t, m)
		for range 3 {
			for at := 0; at < len(memory); at += 2 * page {
				for i := range memory[at : at+page] {
					memory[at+i] ^= 0xff
				}
			}
			require.NoError(t, m.Reset())
			require.True(t, bytes.Equal(want, memory), "every byte is back")
		}
	})
}

func TestMemoryThatGrewHasNoWayBack(t *testing.T) {
	eachKind(t, func(t *testing.T, create func(uint64) *Memory) {
		m := create(8 * wasmPage)
		m.Reallocate(wasmPage)
		assert.True(t, m.Grown(), "it has no image yet")
		require.Error(t, m.Reset())
		i := snapshot(t, m)
		assert.False(t, m.Grown())
		assert.EqualValues(t, wasmPage, i.Size())

		memory := m.Reallocate(2 * wasmPage)
		assert.True(t, m.Grown())
		assert.Equal(t, make([]byte, wasmPage), memory[wasmPage:])
		memory[2*wasmPage-1] = 1
		require.ErrorContains(t, m.Reset(), "131072 bytes")
	})
}

func TestEmptyMemory(t *testing.T) {
	eachKind(t, func(t *testing.T, create func(uint64) *Memory) {
		m := create(0)
		assert.NotNil(t, m.Reallocate(0))
		i := snapshot(t, m)
		require.NoError(t, m.Reset())
		other, err := i.New(wasmPage)
		require.NoError(t, err)
		defer other.Free()
		assert.Len(t, other.Reallocate(wasmPage), wasmPage)
	})
}

func TestImageIsThereForAsLongAsItsMemories(t *testing.T) {
	eachKind(t, func(t *testing.T, create func(uint64) *Memory) {
		first := create(wasmPage)
		copy(first.Reallocate(wasmPage), "image")
		i, err := first.Snapshot()
		require.NoError(t, err)
		m, err := i.New(wasmPage)
		require.NoError(t, err)
		first.Free()
		i.Close()

		memory := m.Reallocate(wasmPage)
		copy(memory, "other")
		require.NoError(t, m.Reset())
		assert.Equal(t, "image", string(memory[:5]))
		m.Free()
		m.Free() // once more does nothing
	})
}

func TestMemoriesOfOneImageAreOfManyGoroutines(t *testing.T) {
	eachKind(t, func(t *testing.T, create func(uint64) *Memory) {
		first := create(4 * wasmPage)
		copy(first.Reallocate(4 * wasmPage)[wasmPage:], "image")
		i := snapshot(t, first)
		var all sync.WaitGroup
		for g := range 4 {
			all.Go(func() {
				for range 50 {
					m, err := i.New(8 * wasmPage)
					if !assert.NoError(t, err) {
						return
					}
					memory := m.Reallocate(4 * wasmPage)
					memory[wasmPage] = byte(g)
					assert.NoError(t, m.Reset())
					assert.Equal(t, "image", string(memory[wasmPage:wasmPage+5]))
					m.Free()
				}
			})
		}
		all.Wait()
	})
}
