package image

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkReset is a call that writes to so many pages of an image of 4 MiB,
// and the reset after it.
func BenchmarkReset(b *testing.B) {
	for _, pages := range []int{2, 16, 64, 256} {
		for name, create := range kinds {
			b.Run(fmt.Sprintf("%s/%d pages", name, pages), func(b *testing.B) {
				m, err := create(16 << 20)
				require.NoError(b, err)
				memory := m.Reallocate(4 << 20)
				for i := range memory {
					memory[i] = byte(i)
				}
				image, err := m.Snapshot()
				require.NoError(b, err)
				defer image.Close()
				defer m.Free()
				for b.Loop() {
					for i := range pages {
						memory[i*(len(memory)/pages)]++
					}
					require.NoError(b, m.Reset())
				}
			})
		}
	}
}
