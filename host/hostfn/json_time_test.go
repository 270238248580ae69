package hostfn

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheTimeIsLookedAtWithinALongToken(t *testing.T) {
	const size = 16 << 20
	text := `"` + strings.Repeat("x", size-2) + `"`
	for _, last := range []int{3, 100, size/jsonBytes - 1} {
		looks := 0
		values, err := countJSON(text, 10, func() bool { looks++; return looks > last })
		require.ErrorIs(t, err, errNoTime)
		assert.Zero(t, values)
		assert.Equal(t, last+1, looks, "it ends with the look that says so")
	}
	looks := 0
	values, err := countJSON(text, 10, func() bool { looks++; return false })
	require.NoError(t, err)
	assert.Equal(t, 1, values)
	assert.GreaterOrEqual(t, looks, size/jsonBytes)
}

func TestATextIsReadInPiecesNoLongerThanWhatALookIsWorth(t *testing.T) {
	r := &timedReader{text: strings.NewReader(strings.Repeat("x", 1<<20)), over: func() bool { return false }}
	n, err := r.Read(make([]byte, 1<<20))
	require.NoError(t, err)
	assert.Equal(t, jsonBytes, n)
}
