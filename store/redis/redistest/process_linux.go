package redistest

import "syscall"

// attributes let a server die with the test binary, however that dies.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
