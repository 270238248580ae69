package wasi

import "time"

const (
	realtime  = 0
	monotonic = 1
)

// origin is where the monotonic clock begins, for all guests: it goes on over
// the calls and the resets of an instance. No guest sees it at 0, which some
// take for a clock that does not run.
var origin = time.Now().Add(-time.Second)

func now(clock uint64) (nanoseconds uint64, _ errno) {
	switch uint32(clock) {
	case realtime:
		return uint64(time.Now().UnixNano()), ok
	case monotonic:
		return uint64(time.Since(origin)), ok
	}
	return 0, invalid
}

func clockTime(_ *Host, m guest, args []uint64) errno {
	ns, err := now(args[0])
	if err != ok {
		return err
	}
	return m.put64(args[2], ns)
}

func clockResolution(_ *Host, m guest, args []uint64) errno {
	if _, err := now(args[0]); err != ok {
		return err
	}
	return m.put64(args[1], 1)
}

func (g guest) put64(pointer, v uint64) errno {
	b, err := g.out(pointer, 8)
	if err == ok {
		little.PutUint64(b, v)
	}
	return err
}

// A subscription has 48 bytes: what the guest calls it by, the type at 8, and
// the clock or the file at 16. An event has 32: the same name, an errno at 8
// and the type at 10.
const (
	subscriptionSize = 48
	eventSize        = 32

	onClock = 0
	onRead  = 1
	onWrite = 2
)

// poll answers all subscriptions at once and never waits: the time of a call
// is its budget, and to sleep would be to hold an instance for nothing. A guest
// that sleeps comes back to ask again until it is out of time.
func poll(h *Host, m guest, args []uint64) errno {
	n := uint32(args[2])
	if n == 0 || n > maxList {
		return invalid
	}
	subscriptions, err := m.list(args[0], n, subscriptionSize)
	if err != ok {
		return err
	}
	events, err := m.list(args[1], n, eventSize)
	if err != ok {
		return err
	}
	count, err := m.out(args[3], 4)
	if err != ok {
		return err
	}
	h.charge(len(subscriptions))
	answers := make([]byte, 0, len(events)) // the guest's lists may overlap
	for at := range n {
		event, known := answer(subscriptions[at*subscriptionSize:])
		if !known {
			return invalid
		}
		answers = append(answers, event[:]...)
	}
	copy(events, answers)
	little.PutUint32(count, n)
	return ok
}

func answer(subscription []byte) (event [eventSize]byte, known bool) {
	kind, of := subscription[8], uint64(little.Uint32(subscription[16:]))
	var err errno
	switch kind {
	case onClock:
		_, err = now(of)
	case onRead:
		if of != stdin {
			err = badFile
		}
	case onWrite:
		if of != stdout && of != stderr {
			err = badFile
		}
	default:
		return event, false
	}
	copy(event[:8], subscription)
	little.PutUint16(event[8:], uint16(err))
	event[10] = kind
	return event, true
}
