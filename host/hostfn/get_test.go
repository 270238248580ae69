package hostfn_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/abi/subject"
)

// counted is a subject that counts what is made of it.
type counted struct {
	abi.Subject
	made map[string]int
}

func (c *counted) Get(pointer string, most int) ([]byte, error) {
	c.made[pointer]++
	return c.Subject.Get(pointer, most)
}

func TestLargeValuesAreMadeOnceACall(t *testing.T) {
	b := newBench(t)
	value := map[string]any{"a": strings.Repeat("a", 1<<20), "b": strings.Repeat("b", 1<<20), "c": "small"}
	s := &counted{subject.New(value, func(any, func(abi.Leaf)) {}), map[string]int{}}
	b.ev.Subject = s
	c, buf := b.call(), make([]byte, 4)
	for range 10 {
		for pointer, want := range map[string]string{"/a": `"aaa`, "/b": `"bbb`, "/c": `"sma`} {
			require.Positive(t, c.Get(pointer, buf))
			require.Equal(t, want, string(buf))
		}
	}
	assert.Equal(t, map[string]int{"/a": 1, "/b": 1, "/c": 1}, s.made)
}
