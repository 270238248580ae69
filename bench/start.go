package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/host"
)

const (
	manifestVariable = "HOOKHOST_BENCH_MANIFEST"
	cacheVariable    = "HOOKHOST_BENCH_CACHE"
)

// measureStart starts processes with the three shipped guests on one cache.
// The first one fills it.
func measureStart(l *lab, s settings) []figure {
	path := writeManifest(l, threeStages(l, s), plenty)
	cache := l.TempDir()
	first, firstOpened := start(l, path, cache)
	var process, opened []float64
	for range s.rounds {
		whole, load := start(l, path, cache)
		process, opened = append(process, whole), append(opened, load)
	}
	return []figure{
		alone("start: process with three Go guests, again", "ms", process).atMost(300).aim(150),
		alone("start: opening the host in it", "ms", opened).atMost(300).aim(150),
		alone("start: process, the first time", "ms", []float64{first}),
		alone("start: opening the host, the first time", "ms", []float64{firstOpened}),
	}
}

// start gives the milliseconds until a process is ready to serve, and those
// that it took to open its host.
func start(l *lab, manifest, cache string) (process, opened float64) {
	cmd := childCommand(l, childStart, manifestVariable+"="+manifest, cacheVariable+"="+cache)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(l, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(l, err)
	begin := time.Now()
	require.NoError(l, cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	process = milliseconds(time.Since(begin))
	require.NoError(l, err)
	require.NoError(l, stdin.Close())
	require.NoError(l, cmd.Wait())
	opened, err = strconv.ParseFloat(strings.TrimSpace(line), 64)
	require.NoError(l, err)
	return process, opened
}

// startHost opens a host, says how long that took and closes it when its
// parent has heard it.
func startHost() {
	begin := time.Now()
	h, err := host.Open(context.Background(), os.Getenv(manifestVariable), host.Options{Dev: true, CacheDir: os.Getenv(cacheVariable), Log: quiet})
	if err == nil {
		fmt.Println(milliseconds(time.Since(begin)))
		_, _ = io.Copy(io.Discard, os.Stdin)
		err = h.Close(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
