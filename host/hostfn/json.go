package hostfn

import (
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/hookhost/hookhost/abi"
)

// checkJSON checks a JSON text that the guest wrote, and takes no more values
// in one call than abi.MaxJSON: what the host decodes once the guest has
// returned does not count as its time, and goes by the values far more than by
// their length. The check itself ends with the call.
func (c *Call) checkJSON(text string) abi.Code {
	values, err := countJSON(text, abi.MaxJSON-c.draft.values, func() bool { return c.ctx.Err() != nil })
	c.draft.values += values
	switch {
	case errors.Is(err, errManyValues):
		return abi.OverLimit
	case errors.Is(err, errNoTime):
		return abi.Unavailable // which a guest that is out of time does not see
	case err != nil:
		return abi.BadArgument
	}
	return abi.OK
}

const (
	jsonDepth  = 10_000   // of values in each other: more encoding/json does not decode
	jsonTokens = 1_000    // between two looks at the time
	jsonBytes  = 64 << 10 // too: one token may be as long as the text
)

var (
	errManyValues = errors.New("more values than are left")
	errNoTime     = errors.New("out of time")
	errBadJSON    = errors.New("not one value of JSON")
)

// countJSON counts the values of a text, the keys of objects among them.
func countJSON(text string, most int, over func() bool) (values int, err error) {
	tokens := json.NewDecoder(&timedReader{text: strings.NewReader(text), over: over})
	tokens.UseNumber()
	for read, depth := 0, 0; ; read++ {
		if read%jsonTokens == 0 && over() {
			return values, errNoTime
		}
		token, err := tokens.Token()
		if errors.Is(err, io.EOF) && values > 0 && depth == 0 {
			return values, nil
		}
		if errors.Is(err, errNoTime) {
			return values, errNoTime
		}
		if err != nil || depth == 0 && values > 0 {
			return values, errBadJSON
		}
		switch token {
		case json.Delim(']'), json.Delim('}'):
			depth--
			continue
		case json.Delim('['), json.Delim('{'):
			depth++
		}
		if values++; values > most {
			return values, errManyValues
		}
		if depth > jsonDepth {
			return values, errBadJSON
		}
	}
}

// timedReader reads a text until the time is over.
type timedReader struct {
	text io.Reader
	over func() bool
}

func (r *timedReader) Read(p []byte) (int, error) {
	if r.over() {
		return 0, errNoTime
	}
	return r.text.Read(p[:min(len(p), jsonBytes)])
}
