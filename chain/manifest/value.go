package manifest

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hookhost/hookhost/abi"
)

// The functions here say what a value may be. Each takes a decoded TOML value
// and returns an error that names what is allowed.

func typeName(v any) string {
	switch v.(type) {
	case string:
		return "a text"
	case int64:
		return "a whole number"
	case float64:
		return "a number with a point"
	case bool:
		return "true or false"
	case time.Time:
		return "a date or time"
	case map[string]any:
		return "a table"
	default:
		return "a list"
	}
}

func mismatch(want string, v any) error { return fmt.Errorf("want %s, not %s", want, typeName(v)) }

func asText(v any) (string, error) {
	s, is := v.(string)
	if !is {
		return "", mismatch("a text", v)
	}
	if s == "" {
		return "", errors.New("empty: write a text or leave the key out")
	}
	return s, nil
}

func asList(v any) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, nil
	case []map[string]any: // an array of tables, of which none is allowed where a list is
		return nil, errors.New("want a list of texts, not of tables")
	}
	return nil, mismatch("a list of texts", v)
}

func asBool(v any) (bool, error) {
	b, is := v.(bool)
	if !is {
		return false, mismatch("true or false", v)
	}
	return b, nil
}

// asInt wants a whole number in a range.
func asInt(least, most int64) func(any) (int64, error) {
	return func(v any) (int64, error) {
		n, is := v.(int64)
		if !is {
			return 0, mismatch(fmt.Sprintf("a whole number from %d to %d", least, most), v)
		}
		if n < least || n > most {
			return 0, fmt.Errorf("%d is out of range: want %d to %d", n, least, most)
		}
		return n, nil
	}
}

// asDuration wants whole milliseconds in a range, written with a unit.
func asDuration(least, most time.Duration) func(any) (time.Duration, error) {
	return func(v any) (time.Duration, error) {
		s, is := v.(string)
		if !is {
			return 0, mismatch(`a duration with its unit, such as "250ms" or "2s"`, v)
		}
		d, err := time.ParseDuration(s)
		switch {
		case err != nil:
			return 0, fmt.Errorf(`%q is no duration: want a number with ms, s, m or h, such as "250ms" or "2s"`, s)
		case d%time.Millisecond != 0:
			return 0, fmt.Errorf("%q is not a whole number of milliseconds", s)
		case d < least || d > most:
			return 0, fmt.Errorf("%q is out of range: want %s to %s", s, short(least), short(most))
		}
		return d, nil
	}
}

// short writes a duration without the zero units that String leaves behind.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// wasmPage is the unit in which guest memory grows.
const wasmPage = 64 << 10

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

// asMemory wants the size of a guest's memory, which comes in Wasm pages.
func asMemory(v any) (int64, error) {
	s, is := v.(string)
	if !is {
		return 0, mismatch(`a size with its unit, such as "32MiB"`, v)
	}
	for _, unit := range sizeUnits {
		digits, found := strings.CutSuffix(s, unit.name)
		if !found {
			continue
		}
		n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 32)
		if err != nil {
			break
		}
		size := int64(n) * unit.bytes
		if size < wasmPage || size > 4<<30 || size%wasmPage != 0 {
			return 0, fmt.Errorf("%q is out of range: want 64KiB to 4GiB in steps of 64KiB", s)
		}
		return size, nil
	}
	return 0, fmt.Errorf(`%q is no size: want a whole number with KiB, MiB or GiB, such as "32MiB"`, s)
}

// asName wants what can name a stage, a plan or a limit.
func asName(v any) (string, error) {
	s, is := v.(string)
	if !is {
		return "", mismatch("a name", v)
	}
	if !abi.ValidName(s) {
		return "", fmt.Errorf("%q is no name: want 1 to 64 of a-z, 0-9, _ and -", s)
	}
	return s, nil
}

// asGlob wants a pattern as path.Match takes it.
func asGlob(v any) (string, error) {
	s, err := asText(v)
	if err != nil {
		return "", err
	}
	if _, err := path.Match(s, ""); err != nil {
		return "", fmt.Errorf(`%q is no glob: want *, ?, [a-z] or \x for a special character x`, s)
	}
	return s, nil
}

func asGrant(v any) (abi.Grant, error) {
	s, is := v.(string)
	if !is {
		return abi.Grant{}, mismatch("a grant", v)
	}
	g, ok := abi.ParseGrant(s)
	if !ok {
		return abi.Grant{}, fmt.Errorf("%q is no grant: want session:read, session:write, actions, usage:read, usage:write, "+
			"limit:NAME, limit:NAME:app, limit:NAME:global, kv:NAME, claim:NAME or secret:NAME", s)
	}
	return g, nil
}

func asHook(v any) (abi.Hook, error) {
	s, is := v.(string)
	if !is {
		return 0, mismatch("the name of a hook", v)
	}
	h, ok := abi.ParseHook(s)
	if !ok {
		var names []string
		for _, h := range abi.Hooks() {
			names = append(names, h.String())
		}
		return 0, fmt.Errorf("%q is no hook: want %s", s, list(names))
	}
	return h, nil
}

// as wants one of the words that a type of the chain reads.
func as[T any, P interface {
	*T
	encoding.TextUnmarshaler
}](v any) (T, error) {
	var out T
	s, is := v.(string)
	if !is {
		return out, mismatch("a word", v)
	}
	return out, P(&out).UnmarshalText([]byte(s))
}

// asPublicText wants a text that users and models may read.
func asPublicText(v any) (string, error) {
	s, err := asText(v)
	if err != nil {
		return "", err
	}
	if strings.TrimSpace(s) == "" {
		return "", errors.New("blank: write a text or leave the key out")
	}
	if len(s) > 2000 {
		return "", fmt.Errorf("%d bytes: want at most 2000", len(s))
	}
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return "", fmt.Errorf("control character %U: want plain text", r)
		}
	}
	return s, nil
}

// number writes a number as TOML does.
func number(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	s := strconv.FormatFloat(f, 'g', -1, 64)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}
