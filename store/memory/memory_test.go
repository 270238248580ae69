package memory_test

import (
	"testing"

	"github.com/hookhost/hookhost/store/memory"
	"github.com/hookhost/hookhost/store/storetest"
)

func TestSuite(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Engine {
		clock := storetest.NewClock()
		return storetest.Engine{Store: memory.New(clock), Clock: clock}
	})
}
