package redistest

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Wire is a proxy between clients and a server that speaks plain TCP. It can
// be slow, lose replies and be cut.
//
// It counts round trips: what a client sends until the server replies is one,
// as a pipeline is. What a new connection begins with (HELLO, AUTH, CLIENT,
// SELECT, READONLY) is a handshake: it is neither counted nor lost.
type Wire struct {
	Addr string

	server string
	done   sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while cut
	conns    map[net.Conn]bool
	delay    time.Duration
	drops    int
	trips    int64
}

// Proxy starts a proxy to a server's address.
func Proxy(t testing.TB, addr string) *Wire {
	t.Helper()
	w := &Wire{server: addr, conns: map[net.Conn]bool{}}
	port, err := freePort()
	require.NoError(t, err)
	w.Addr = local(port)
	w.Mend(t)
	t.Cleanup(func() {
		w.Cut()
		w.done.Wait()
	})
	return w
}

// Delay holds up each reply.
func (w *Wire) Delay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// DropReplies loses the replies of the next n round trips: the server does
// what it was asked, then the connection is cut.
func (w *Wire) DropReplies(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drops = n
}

// RoundTrips is how many there were.
func (w *Wire) RoundTrips() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trips
}

// Cut ends all connections and refuses new ones.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		_ = w.listener.Close()
		w.listener = nil
	}
	for conn := range w.conns {
		_ = conn.Close()
	}
}

// Mend lets connections through again.
func (w *Wire) Mend(t testing.TB) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		return
	}
	listener, err := net.Listen("tcp", w.Addr)
	require.NoError(t, err)
	w.listener = listener
	w.done.Go(func() { w.accept(listener) })
}

func (w *Wire) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		w.done.Go(func() { w.join(listener, client) })
	}
}

// join connects a client with the server until one of them ends it.
func (w *Wire) join(listener net.Listener, client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	if !w.enter(listener, client, server) {
		return
	}
	defer w.leave(client, server)

	l := &line{wire: w, client: client, server: server, gone: make(chan struct{})}
	replies := make(chan held, 1024)
	var ends sync.WaitGroup
	ends.Go(l.requests)
	ends.Go(func() { l.replies(replies) })
	ends.Go(func() { l.deliver(replies) })
	ends.Wait()
}

// enter reports whether a connection may stay: not one that was taken before a
// cut.
func (w *Wire) enter(listener net.Listener, conns ...net.Conn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != listener {
		return false
	}
	for _, conn := range conns {
		w.conns[conn] = true
	}
	return true
}

func (w *Wire) leave(conns ...net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range conns {
		delete(w.conns, conn)
	}
}

// line is one client's connection.
type line struct {
	wire           *Wire
	client, server net.Conn
	once           sync.Once
	gone           chan struct{} // closed by hangUp

	mu    sync.Mutex
	asked bool // there are requests that were not replied to
	trip  bool // and they are no handshake
}

// held is a part of a reply that waits.
type held struct {
	until time.Time
	data  []byte
}

// requests passes on what the client sends.
func (l *line) requests() {
	defer l.hangUp()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if n > 0 {
			l.ask(buf[:n])
			if _, err := l.server.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// ask notes that the client sent something.
func (l *line) ask(data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked {
		l.asked, l.trip = true, !handshake(data)
	}
}

// replies reads what the server sends and gives it a time to be delivered.
func (l *line) replies(out chan<- held) {
	defer close(out)
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if n > 0 {
			delay, lost := l.reply()
			if lost {
				l.hangUp()
				return
			}
			select {
			case out <- held{time.Now().Add(delay), bytes.Clone(buf[:n])}:
			case <-l.gone:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// reply notes that the server replied, and says what is to come of it.
func (l *line) reply() (delay time.Duration, lost bool) {
	l.mu.Lock()
	trip := l.asked && l.trip
	l.asked = false
	l.mu.Unlock()

	w := l.wire
	w.mu.Lock()
	defer w.mu.Unlock()
	if trip {
		w.trips++
		if w.drops > 0 {
			w.drops--
			return 0, true
		}
	}
	return w.delay, false
}

// deliver gives replies to the client when it is time.
func (l *line) deliver(in <-chan held) {
	defer l.hangUp()
	for reply := range in {
		select {
		case <-time.After(time.Until(reply.until)):
		case <-l.gone:
			return
		}
		if _, err := l.client.Write(reply.data); err != nil {
			return
		}
	}
}

func (l *line) hangUp() {
	l.once.Do(func() {
		close(l.gone)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

// handshake reports whether requests begin with what only sets up a connection.
func handshake(data []byte) bool {
	r := bytes.NewBuffer(data)
	for range 2 { // *N and $LENGTH
		if _, err := r.ReadBytes('\n'); errors.Is(err, io.EOF) {
			return false
		}
	}
	name, _, _ := bytes.Cut(r.Bytes(), []byte("\r\n"))
	switch string(bytes.ToUpper(name)) {
	case "HELLO", "AUTH", "CLIENT", "SELECT", "READONLY":
		return true
	}
	return false
}
