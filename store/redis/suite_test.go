package redis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store/redis/redistest"
	"github.com/hookhost/hookhost/store/storetest"
)

func TestSuite(t *testing.T) {
	server := redistest.Single(t)
	clock := newServerClock(t, server)
	rules := 0
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		rules++
		return storetest.Engine{Store: onClock(t, server, fmt.Sprint("rule-", rules)), Clock: clock}
	})
}

func TestExactTheTestedScriptsAreTheShippedOnesButForTheClock(t *testing.T) {
	shipped, tested := loadScripts(timeLine), loadScripts(testClock)
	files, err := sources.ReadDir("lua")
	require.NoError(t, err)
	require.Len(t, files, len(scriptNames)+len([]string{"prelude", "claims", "counters", "activity"}))
	for name, s := range shipped {
		require.Equal(t, 1, strings.Count(s.source, timeLine), name)
		require.Equal(t, 1, strings.Count(s.source, "TIME"), name)
		require.Equal(t, strings.Replace(s.source, timeLine, testClock, 1), tested[name].source, name)
	}
}
