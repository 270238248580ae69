package hostfn

import (
	"strings"

	"github.com/hookhost/hookhost/abi"
)

// checkJSON checks a JSON text that the guest wrote. It takes those that
// encoding/json takes, and no more values in one call than abi.MaxJSON: what
// the host decodes once the guest has returned does not count as its time, and
// goes by the values far more than by their length. The check itself ends with
// the call.
func (c *Call) checkJSON(text string) abi.Code {
	r := jsonText{text: text, most: abi.MaxJSON - c.draft.values, over: func() bool { return c.ctx.Err() != nil }}
	right := r.document()
	c.draft.values += r.values
	switch {
	case r.values > r.most:
		return abi.OverLimit
	case r.stopped:
		return abi.Unavailable // which a guest that is out of time does not see
	case !right:
		return abi.BadArgument
	}
	return abi.OK
}

const (
	jsonDepth = 10_000  // of values in each other
	jsonPiece = 1 << 16 // bytes between two looks at the time
)

// jsonText is a text that is read as JSON. Its methods report whether what
// they are named after stands at the place that was come to, and go behind it.
type jsonText struct {
	text    string
	at      int
	values  int // so far, the keys of objects among them
	most    int
	over    func() bool // whether there is no time left
	look    int         // where to ask it again
	stopped bool
}

func (r *jsonText) document() bool {
	return r.value(0) && r.space() && r.at == len(r.text)
}

// more reports whether there is a byte to read, and time for it.
func (r *jsonText) more() bool {
	if r.at >= r.look {
		r.look = r.at + jsonPiece
		r.stopped = r.stopped || r.over()
	}
	return r.at < len(r.text) && !r.stopped
}

func (r *jsonText) space() bool {
	for r.more() && strings.IndexByte(" \t\r\n", r.text[r.at]) >= 0 {
		r.at++
	}
	return !r.stopped
}

func (r *jsonText) value(depth int) bool {
	r.values++
	if depth > jsonDepth || r.values > r.most || !r.space() || !r.more() {
		return false
	}
	switch r.text[r.at] {
	case '{':
		return r.list('}', depth, func() bool {
			r.values++
			return r.space() && r.quoted() && r.space() && r.byte(":") && r.value(depth+1)
		})
	case '[':
		return r.list(']', depth, func() bool { return r.value(depth + 1) })
	case '"':
		return r.quoted()
	case 't':
		return r.word("true")
	case 'f':
		return r.word("false")
	case 'n':
		return r.word("null")
	}
	return r.number()
}

// list is what stands between two brackets, with commas between.
func (r *jsonText) list(end byte, depth int, element func() bool) bool {
	if depth == jsonDepth {
		return false
	}
	r.at++
	if r.space() && r.more() && r.text[r.at] == end {
		r.at++
		return true
	}
	for element() && r.space() && r.more() {
		switch r.text[r.at] {
		case end:
			r.at++
			return true
		case ',':
			r.at++
		default:
			return false
		}
	}
	return false
}

func (r *jsonText) quoted() bool {
	if !r.byte(`"`) {
		return false
	}
	for r.more() {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return true
		case c == '\\':
			r.at++
			if !r.escaped() {
				return false
			}
		case c < ' ':
			return false
		default:
			r.at++
		}
	}
	return false
}

func (r *jsonText) escaped() bool {
	if !r.byte("u") {
		return r.byte(`"\/bfnrt`)
	}
	const hex = "0123456789abcdefABCDEF"
	return r.byte(hex) && r.byte(hex) && r.byte(hex) && r.byte(hex)
}

func (r *jsonText) word(word string) bool {
	if !strings.HasPrefix(r.text[r.at:], word) {
		return false
	}
	r.at += len(word)
	return true
}

func (r *jsonText) number() bool {
	r.byte("-")
	if !r.byte("0") && !r.digits() {
		return false
	}
	if r.byte(".") && !r.digits() {
		return false
	}
	if r.byte("eE") {
		r.byte("+-")
		return r.digits()
	}
	return true
}

func (r *jsonText) digits() bool {
	from := r.at
	for r.byte("0123456789") {
	}
	return r.at > from
}

// byte is one of a set.
func (r *jsonText) byte(set string) bool {
	if !r.more() || strings.IndexByte(set, r.text[r.at]) < 0 {
		return false
	}
	r.at++
	return true
}
