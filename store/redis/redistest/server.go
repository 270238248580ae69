package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

// Server is one redis-server.
type Server struct {
	Addr string
	// With TLS: PEM files of the authority and of a certificate that server and
	// clients can both show.
	CA, Cert, Key string
	// Client is a client of the server's own, past every proxy. It does not
	// try again.
	Client *redis.Client

	settings
	dir  string
	port int
	proc *process
}

// settings are what a server is started with.
type settings struct {
	lines    []string
	password string
	tls      bool
	sentinel bool
}

// Option changes how a server is started.
type Option func(*settings)

// Config adds lines to redis.conf. They win over the lines of the other
// options.
func Config(lines ...string) Option {
	return func(s *settings) { s.lines = append(s.lines, lines...) }
}

// Password sets the password of the default user, here and on what the server
// becomes a replica of.
func Password(p string) Option {
	return func(s *settings) { s.password = p }
}

// AppendOnly keeps the data over a Restart, also after a Kill.
func AppendOnly() Option { return Config("appendonly yes") }

// TLS makes a server that speaks nothing else.
func TLS() Option {
	return func(s *settings) { s.tls = true }
}

// Single starts one server. It keeps nothing on disk unless an option says so.
func Single(t testing.TB, options ...Option) *Server {
	t.Helper()
	Require(t)
	s := &Server{dir: t.TempDir()}
	for _, option := range options {
		option(&s.settings)
	}
	s.launch(t)
	return s
}

// URL is where clients find the server: with the password, without the files
// that TLS needs.
func (s *Server) URL() string {
	u := url.URL{Scheme: "redis", Host: s.Addr}
	if s.tls {
		u.Scheme = "rediss"
	}
	if s.password != "" {
		u.User = url.UserPassword("", s.password)
	}
	return u.String()
}

// Do sends a command and gives the reply, which must not be an error. A null
// is nil.
func (s *Server) Do(t testing.TB, args ...any) any {
	t.Helper()
	reply, err := s.Client.Do(context.Background(), args...).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	require.NoError(t, err, "%v", args)
	return reply
}

// Info reads a field of INFO, of any section: empty if there is none.
func (s *Server) Info(t testing.TB, field string) string {
	t.Helper()
	all, err := s.Client.Info(context.Background(), "everything").Result()
	require.NoError(t, err)
	return fieldOf(all, field)
}

// Stop ends the server in order.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	require.NoError(t, s.proc.stop())
}

// Kill ends the server at once.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	require.NoError(t, s.proc.kill())
}

// Pause keeps the server from doing anything. Its connections stay, and the
// kernel takes new ones.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	require.NoError(t, s.proc.signal(syscall.SIGSTOP))
}

// Resume ends a pause.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	require.NoError(t, s.proc.signal(syscall.SIGCONT))
}

// Restart stops the server if it runs and starts it with the same port, folder
// and configuration file.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	require.NoError(t, s.start())
}

// MakeReplicaOf makes the server a replica and waits until it follows. Restart
// undoes it.
func (s *Server) MakeReplicaOf(t testing.TB, master *Server) {
	t.Helper()
	if master.password != "" {
		s.Do(t, "CONFIG", "SET", "masterauth", master.password)
	}
	s.Do(t, "REPLICAOF", "127.0.0.1", master.port)
	eventually(t, patience, "a replica follows", func() bool { return s.Info(t, "master_link_status") == "up" })
}

// patience is how long servers get to do what they were told.
const patience = 30 * time.Second

// launch starts the server on a port that it finds, and ends it with the test.
func (s *Server) launch(t testing.TB) {
	t.Helper()
	if s.tls {
		s.makeCertificate(t)
	}
	t.Cleanup(func() {
		if s.proc != nil {
			_ = s.proc.kill()
		}
		if s.Client != nil {
			_ = s.Client.Close()
		}
	})
	const attempts = 5
	for attempt := 1; ; attempt++ {
		var err error
		s.port, err = freePort()
		require.NoError(t, err)
		s.Addr = local(s.port)
		require.NoError(t, os.WriteFile(s.file(), []byte(s.config()), 0o600))
		s.Client = redis.NewClient(s.options(t))
		if err = s.start(); err == nil {
			return
		}
		require.True(t, s.proc != nil && s.proc.portTaken() && attempt < attempts, "%v", err)
		require.NoError(t, s.Client.Close())
	}
}

func (s *Server) file() string { return filepath.Join(s.dir, "redis.conf") }

func (s *Server) config() string {
	lines := []string{"bind 127.0.0.1", "protected-mode no"}
	if s.tls {
		lines = append(lines, "port 0", fmt.Sprintf("tls-port %d", s.port), "tls-replication yes", "tls-auth-clients optional",
			"tls-ca-cert-file "+s.CA, "tls-cert-file "+s.Cert, "tls-key-file "+s.Key)
	} else {
		lines = append(lines, fmt.Sprintf("port %d", s.port))
	}
	if !s.sentinel {
		lines = append(lines, `save ""`, "repl-diskless-sync-delay 0", "shutdown-timeout 1")
	}
	if s.password != "" {
		lines = append(lines, fmt.Sprintf("requirepass %q", s.password), fmt.Sprintf("masterauth %q", s.password))
	}
	return strings.Join(append(lines, s.lines...), "\n") + "\n"
}

func (s *Server) options(t testing.TB) *redis.Options {
	t.Helper()
	o := &redis.Options{
		Addr: s.Addr, Password: s.password, MaxRetries: -1, DialerRetries: 1, ReadTimeout: 10 * time.Second, ContextTimeoutEnabled: true,
		DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	if s.tls {
		o.TLSConfig = s.clientTLS(t)
	}
	return o
}

// start runs the server until it answers.
func (s *Server) start() error {
	args := []string{s.file()}
	if s.sentinel {
		args = append(args, "--sentinel")
	}
	var err error
	if s.proc, err = run(s.dir, args...); err != nil {
		return err
	}
	err = errors.New("no answer yet")
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !s.proc.alive() {
			return s.proc.failure("ended", err)
		}
		if err = s.answers(); err == nil {
			return nil
		}
	}
	return errors.Join(s.proc.failure(fmt.Sprintf("did not answer within %s", patience), err), s.proc.kill())
}

// answers reports whether the server is ready, and is the one on its port.
func (s *Server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := net.Dial("tcp", s.Addr) // the client would log that nobody listens yet
	if err != nil {
		return err
	}
	_ = conn.Close()
	info, err := s.Client.Info(ctx, "server").Result()
	if err == nil {
		err = s.Client.Ping(ctx).Err()
	}
	if refusesDefaultUser(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if pid := fieldOf(info, "process_id"); pid != strconv.Itoa(s.proc.cmd.Process.Pid) {
		return fmt.Errorf("process %s answers", pid)
	}
	return nil
}

// refusesDefaultUser reports whether a server is ready for others than the
// default user, as one with an aclfile can be.
func refusesDefaultUser(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	code, _, _ := strings.Cut(reply.Error(), " ")
	return code == "NOAUTH" || code == "NOPERM" || code == "WRONGPASS"
}

func fieldOf(info, field string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
