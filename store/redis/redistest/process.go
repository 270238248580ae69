package redistest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is one life of a server.
type process struct {
	cmd  *exec.Cmd
	log  string
	gone chan struct{} // closed when it has ended
}

// run starts a server in its folder.
func run(dir string, args ...string) (*process, error) {
	p := &process{log: filepath.Join(dir, "log"), gone: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr = dir, log, log, attributes()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.gone)
		_ = p.cmd.Wait() // how it ended is in its log
	}()
	return p, nil
}

func (p *process) alive() bool {
	select {
	case <-p.gone:
		return false
	default:
		return true
	}
}

// signal is for a process that may have ended.
func (p *process) signal(s os.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// stop ends it in order, also when it is paused.
func (p *process) stop() error {
	if err := errors.Join(p.signal(syscall.SIGCONT), p.signal(syscall.SIGTERM)); err != nil {
		return err
	}
	select {
	case <-p.gone:
		return nil
	case <-time.After(10 * time.Second):
		return p.failure("did not stop", p.kill())
	}
}

func (p *process) kill() error {
	err := p.signal(syscall.SIGKILL)
	<-p.gone
	return err
}

// failure is an error with the end of the log.
func (p *process) failure(what string, cause error) error {
	return fmt.Errorf("%s %s: %w\n%s", binary, what, cause, p.tail())
}

func (p *process) tail() []byte {
	log, err := os.ReadFile(p.log)
	if err != nil {
		return []byte(err.Error())
	}
	const most = 2000
	return bytes.TrimSpace(log[max(0, len(log)-most):])
}

// portTaken reports whether it ended because another had its port.
func (p *process) portTaken() bool {
	return !p.alive() && bytes.Contains(p.tail(), []byte("Address already in use"))
}
