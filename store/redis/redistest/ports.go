package redistest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports are below those that systems give to clients, and a cluster's bus is
// too: nobody gets the port of a stopped server before it starts again.
const (
	lowestPort = 12000
	busOffset  = 10000 // Redis: from a port to its bus
)

var ports = struct {
	sync.Mutex
	given map[int]bool
}{given: map[int]bool{}}

// freePort gives a port that is free, and its bus too, and that this process
// gives to nobody else.
func freePort() (int, error) {
	ports.Lock()
	defer ports.Unlock()
	for range 200 {
		port := lowestPort + rand.IntN(busOffset)
		if ports.given[port] || !free(port) || !free(port+busOffset) {
			continue
		}
		ports.given[port] = true
		return port, nil
	}
	return 0, errors.New("no free port")
}

func free(port int) bool {
	l, err := net.Listen("tcp", local(port))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func local(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
