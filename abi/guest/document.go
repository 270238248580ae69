package guest

import "github.com/hookhost/hookhost/abi"

// Get reads the JSON at an RFC 6901 pointer into the hook's subject; the
// empty pointer is all of it. It shows the value as it came.
func (c *Call) Get(pointer string) (json string, err error) {
	return readString(func(buf []byte) int32 { return c.border.Get(pointer, buf) })
}

// Set puts JSON in the place of what is at the pointer, which has to exist.
func (c *Call) Set(pointer, json string) error { return c.edit(abi.EditReplace, pointer, json) }

// Add puts JSON at the pointer: a member, or an element before that index, or
// with the index "-" at the end.
func (c *Call) Add(pointer, json string) error { return c.edit(abi.EditAdd, pointer, json) }

// Remove removes what is at the pointer, which has to exist.
func (c *Call) Remove(pointer string) error { return c.edit(abi.EditRemove, pointer, "") }

func (c *Call) edit(op abi.EditOp, pointer, json string) error {
	return c.edited(c.border.Edit(int32(op), pointer, json))
}

// Quote makes a JSON string of a text.
func Quote(text string) string {
	const hex = "0123456789abcdef"
	q := make([]byte, 0, len(text)+2)
	q = append(q, '"')
	for i := range len(text) {
		switch b := text[i]; {
		case b == '"' || b == '\\':
			q = append(q, '\\', b)
		case b < 0x20:
			q = append(q, '\\', 'u', '0', '0', hex[b>>4], hex[b&15])
		default:
			q = append(q, b)
		}
	}
	return string(append(q, '"'))
}
