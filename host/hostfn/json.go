package hostfn

import (
	"encoding/json"

	"github.com/hookhost/hookhost/abi"
)

// checkJSON bounds what the host will have to decode once the guest has
// returned, and its time does not count any more. That goes by the number of
// values far more than by their length: 16 MiB of them took 1.8 s, and one
// string of that length 50 ms.
func (d *draft) checkJSON(text string) abi.Code {
	if d.values += countValues(text, abi.MaxJSON-d.values); d.values > abi.MaxJSON {
		return abi.OverLimit
	}
	if !json.Valid([]byte(text)) {
		return abi.BadArgument
	}
	return abi.OK
}

// countValues counts the values in a JSON text, and the keys of its objects. Of
// what is no JSON it counts anything. It stops behind most.
func countValues(text string, most int) int {
	n, quoted := 1, false
	for i := 0; i < len(text) && n <= most; i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':' || c == '[' || c == '{'):
			n++
		}
	}
	return n
}
