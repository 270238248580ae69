package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxFile bounds the size of a file, in bytes.
const maxFile = 1 << 20

// ReadFile reads a file of at most 1 MiB. What is no regular file, such as a
// device or a pipe, which may never end, is an error and is not read.
func ReadFile(path string) ([]byte, error) { return readFile(path, maxFile) }

var errIrregular = errors.New("not a regular file")

// readFile reads a regular file of at most so many bytes. It opens without
// waiting, as a pipe would wait for its writer, and looks at what it opened.
func readFile(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &os.PathError{Op: "read", Path: path, Err: errIrregular}
	}
	tooLarge := &os.PathError{Op: "read", Path: path, Err: fmt.Errorf("more than %d bytes", most)}
	if info.Size() > most {
		return nil, tooLarge
	}
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead)
	if _, err := data.ReadFrom(io.LimitReader(f, most+1)); err != nil { // the size may say less, as of a file that grows
		return nil, err
	}
	if int64(data.Len()) > most {
		return nil, tooLarge
	}
	return data.Bytes(), nil
}
