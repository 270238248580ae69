package meter

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func active(at byte, bytes string) segment {
	return segment{offset: reader{[]byte{opI32Const, at, opEnd}, 0}, bytes: []byte(bytes)}
}

func TestSegmentsThatFollowOneAnotherBecomeOne(t *testing.T) {
	onePage := reader{[]byte{1, 0, 1}, 0}
	for name, tt := range map[string]struct {
		in, want []segment
	}{
		"close":                {[]segment{active(1, "ab"), active(5, "c"), active(6, "d")}, []segment{active(1, "ab\x00\x00cd")}},
		"in two places":        {[]segment{active(50, "x"), active(1, "ab"), active(5, "c"), active(54, "y")}, []segment{active(50, "x"), active(1, "ab\x00\x00c"), active(54, "y")}},
		"one over another":     {[]segment{active(1, "ab"), active(2, "c"), active(3, "d")}, nil},
		"backwards":            {[]segment{active(9, "ab"), active(5, "c")}, []segment{active(9, "ab"), active(5, "c")}},
		"into what was before": {[]segment{active(8, "x"), active(1, "ab"), active(12, "c")}, []segment{active(8, "x"), active(1, "ab"), active(12, "c")}},
		"with a passive one":   {[]segment{active(1, "a"), {passive: true, bytes: []byte("p")}, active(2, "b")}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.want == nil {
				tt.want = tt.in
			}
			m := &module{data: tt.in, dataCount: -1}
			m.sections[sectionMemory] = onePage
			m.join()
			assert.Equal(t, tt.want, m.data)
		})
	}
	t.Run("of a memory that is not the module's own, or that instructions may name", func(t *testing.T) {
		for memory, dataCount := range map[*reader]int{{}: -1, &onePage: 2} {
			m := &module{data: []segment{active(1, "a"), active(2, "b")}, dataCount: dataCount}
			m.sections[sectionMemory] = *memory
			m.join()
			assert.Len(t, m.data, 2)
		}
	})
	t.Run("of a memory that begins without room for them", func(t *testing.T) {
		m := &module{data: []segment{active(1, "a"), active(2, "b")}, dataCount: -1}
		m.sections[sectionMemory] = reader{[]byte{1, 0, 0}, 0}
		m.join()
		assert.Len(t, m.data, 2)
	})
}
