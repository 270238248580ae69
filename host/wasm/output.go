package wasm

import (
	"bytes"
	"log/slog"

	"github.com/hookhost/hookhost/host/hostfn"
)

// output takes what a guest prints, line by line.
type output struct {
	call *hostfn.Call
	line bytes.Buffer
}

const maxPartialLine = 8 << 10

func (o *output) Write(p []byte) (int, error) {
	for _, b := range p {
		switch {
		case b == '\n':
			o.flush()
		case o.line.Len() < maxPartialLine:
			o.line.WriteByte(b)
		}
	}
	return len(p), nil
}

func (o *output) flush() {
	o.call.WriteLine(slog.LevelInfo, o.line.String())
	o.line.Reset()
}

// end writes the last line when a call is over.
func (o *output) end() {
	if o.line.Len() > 0 {
		o.flush()
	}
	o.call = nil
}
