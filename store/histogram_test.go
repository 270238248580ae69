package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/hookhost/hookhost/store"
)

func TestAStepHasTwoSignificantDigits(t *testing.T) {
	for n, step := range map[int64]int64{0: 0, 1: 1, 99: 99, 100: 100, 101: 110, 991: 1000, 1000: 1000, 1234: 1300, 1e15: 1e15, 1e15 - 1: 1e15} {
		assert.Equal(t, step, store.Step(n), n)
	}
}

func TestPercentilesCountMinutes(t *testing.T) {
	h := store.Histogram{10: 94, 20: 1, 500: 5}
	assert.EqualValues(t, 20, h.Percentile(95))
	assert.EqualValues(t, 10, h.Percentile(94))
	assert.EqualValues(t, 500, h.Percentile(96))
	assert.EqualValues(t, 500, h.Percentile(100))
	assert.Zero(t, store.Histogram{}.Percentile(95))
	h.Merge(store.Histogram{10: 900, 1: 1})
	assert.EqualValues(t, 10, h.Percentile(95))
}
