package redis

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/hookhost/hookhost/store"
)

// Keys are NAMESPACE:{OWNER}:KIND:NAME..., so that all that is one owner's is
// in one slot. Parts are escaped: none contains a colon or a brace.

const maxPart = 128 // bytes of a part as it stands in a key

// escape keeps letters, digits and _ . @ - and writes other bytes as %XX. What
// gets too long becomes ~ and its hash.
func escape(part string) string {
	const hex = "0123456789ABCDEF"
	plain := 0
	for plain < len(part) && isPlain(part[plain]) {
		plain++
	}
	if plain == len(part) && plain <= maxPart {
		return part
	}
	var b strings.Builder
	for i := range len(part) {
		if c := part[i]; isPlain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		}
		if b.Len() > maxPart {
			sum := sha256.Sum256([]byte(part))
			return "~" + base64.RawURLEncoding.EncodeToString(sum[:])
		}
	}
	return b.String()
}

func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '@' || c == '-'
}

// owned makes the keys of one owner.
type owned string

func (s *Store) owned(o store.Owner) owned {
	var tag string
	switch o.Kind {
	case store.OwnerUser:
		tag = "u:" + escape(o.App) + ":" + escape(o.User)
	case store.OwnerApp:
		tag = "a:" + escape(o.App)
	default:
		tag = "g"
	}
	if o.Shadow != "" {
		return owned(s.namespace + ":{" + tag + "}:s:" + escape(o.Shadow) + ":")
	}
	return owned(s.namespace + ":{" + tag + "}:")
}

func (o owned) buckets() string            { return string(o) + "b" }
func (o owned) leases(limit string) string { return string(o) + "l:" + escape(limit) }
func (o owned) operation(id string) string { return string(o) + "o:" + escape(id) }
func (o owned) call(nonce string) string   { return string(o) + "once:" + nonce }
func (o owned) claim(k store.ClaimKey) string {
	return string(o) + "c:" + escape(k.Name) + ":" + escape(k.Key)
}
func (o owned) token() string { return string(o) + "token" }
func (o owned) value(k store.ValueKey) string {
	return string(o) + "v:" + escape(k.Name) + ":" + escape(k.Key)
}
func (o owned) counter(name string) string { return string(o) + "n:" + escape(name) }
func (o owned) addition(name, id string) string {
	return string(o) + "add:" + escape(name) + ":" + escape(id)
}
func (o owned) records() string     { return string(o) + "records" }
func (o owned) recordOrder() string { return string(o) + "records:order" }
func (o owned) activity() string    { return string(o) + "activity" }
func (o owned) average(agent, model string) string {
	return string(o) + "avg:" + escape(agent) + ":" + escape(model)
}
func (o owned) learned(id string) string { return string(o) + "learn:" + escape(id) }

func (s *Store) overrides(kind string) string { return s.namespace + ":{overrides}:" + kind }
func (s *Store) marker() string               { return s.namespace + ":{format}" }
