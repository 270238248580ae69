package main

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store/redis/redistest"
)

const admissionsOfRound = 60_000

// measureThroughput compares admissions through the engine with the same
// script on the same keys sent by redis-benchmark.
func measureThroughput(l *lab, s settings) []figure {
	server := redistest.Single(l)
	engine := openStore(l, server.URL())
	admit := func(i int) bool { return l.admit(engine, wholeTurn("user", operation(i))) }
	require.True(l, admit(1)) // the server knows the script now
	command := sentBy(l, server, func() { require.True(l, admit(0)) })
	var r rounds
	for range s.rounds {
		empty(l, server)
		ours := perSecond(l, admissionsOfRound, admit)
		remembers(l, server, admissionsOfRound)

		empty(l, server)
		peer := benchmark(l, server, admissionsOfRound, command)
		remembers(l, server, admissionsOfRound)
		r.add(ours, peer)
	}
	return []figure{r.ratio("throughput: admissions, 50 connections", "per second", "redis-benchmark").atLeast(0.8)}
}

// operation is an id as long as the numbers of redis-benchmark.
func operation(i int) string { return fmt.Sprintf("%012d", i) }

// empty makes a server forget all but its scripts.
func empty(l *lab, server *redistest.Server) { server.Do(l, "FLUSHALL", "SYNC") }

// remembers checks that so many admissions were made: each has a key. Random
// ids of redis-benchmark may meet.
func remembers(l *lab, server *redistest.Server, admissions int) {
	keys, isCount := server.Do(l, "DBSIZE").(int64)
	require.True(l, isCount)
	require.InEpsilon(l, admissions, keys, 0.01, "keys of admissions")
}

// sentBy is the EVALSHA that something sends.
func sentBy(l *lab, server *redistest.Server, do func()) []string {
	server.Do(l, "CONFIG", "SET", "slowlog-log-slower-than", 0)
	do()
	server.Do(l, "CONFIG", "SET", "slowlog-log-slower-than", -1)
	log, err := server.Client.SlowLogGet(l.ctx, 10).Result()
	require.NoError(l, err)
	for _, entry := range log {
		if strings.EqualFold(entry.Args[0], "evalsha") {
			require.Less(l, len(entry.Args), 32, "the log cuts off what is longer")
			return entry.Args
		}
	}
	require.Fail(l, "no EVALSHA in the slow log", "%v", log)
	return nil
}

var requestsPerSecond = regexp.MustCompile(`([0-9.]+) requests per second`)

// benchmark sends the command with a random operation each time.
func benchmark(l *lab, server *redistest.Server, n int, command []string) float64 {
	host, port, err := net.SplitHostPort(server.Addr)
	require.NoError(l, err)
	args := []string{"-h", host, "-p", port, "-c", strconv.Itoa(connections), "-n", strconv.Itoa(n), "-r", "2000000000", "-q"}
	for _, arg := range command {
		args = append(args, strings.ReplaceAll(arg, operation(0), "__rand_int__"))
	}
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	out, err := exec.CommandContext(ctx, "redis-benchmark", args...).CombinedOutput()
	require.NoError(l, err, "%s", out)
	found := requestsPerSecond.FindAllSubmatch(out, -1)
	require.NotEmpty(l, found, "%s", out)
	rate, err := strconv.ParseFloat(string(found[len(found)-1][1]), 64)
	require.NoError(l, err)
	return rate
}
