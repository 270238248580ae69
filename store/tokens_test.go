package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/store"
)

func TestCase025FreshIsThePromptWithoutTheCachedPart(t *testing.T) {
	n := func(n int64) *int64 { return &n }
	for name, c := range map[string]struct{ prompt, cached, fresh *int64 }{
		"a part is cached":        {n(12000), n(9000), n(3000)},
		"b all of it is cached":   {n(12000), n(12000), n(0)},
		"c more than there is":    {n(100), n(120), n(0)},
		"nothing is cached":       {n(100), n(0), n(100)},
		"the cached part unknown": {n(100), nil, nil},
		"the prompt unknown":      {nil, n(100), nil},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.fresh, store.Tokens{Prompt: c.prompt, Cached: c.cached}.Fresh())
		})
	}
}
