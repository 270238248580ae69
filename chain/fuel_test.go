package chain

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFuelIsOfTheCallItWasBurnedIn(t *testing.T) {
	one, burned := withFuel(t.Context())
	other, nothing := withFuel(one)
	Burned(one, 7)
	assert.EqualValues(t, 7, *burned)
	assert.Zero(t, *nothing)
	Burned(other, 8)
	assert.EqualValues(t, 7, *burned)
	Burned(context.Background(), 9) // nobody traces
}
