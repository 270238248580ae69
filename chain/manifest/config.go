package manifest

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/hookhost/hookhost/abi"
)

// Setting is one value of a stage's configuration, as its guest reads it.
//
// The key is dotted, in TOML's notation: a part that has other characters than
// A-Z, a-z, 0-9, _ and - stands in quotes. Elements of lists are named by
// their index, from 0. The value is a text as it is, and else in TOML's form:
// 10, 1.5, true, 2026-11-30T00:00:00Z. A list or a table without elements is
// the value "[]" or "{}".
type Setting struct{ Key, Value string }

// readConfig flattens the table config of a stage.
func readConfig(t *table) []Setting {
	c := t.sub("config")
	var out []Setting
	for _, key := range c.keys() {
		out = flatten(out, []string{key}, c.layerOf(key).values[key])
	}
	at := func(s Setting) int {
		return c.layers[0].places[dotted(c.path...)+"."+s.Key].value.start
	}
	slices.SortStableFunc(out, func(a, b Setting) int { return cmp.Compare(at(a), at(b)) })
	for _, s := range out {
		if len(s.Key) > abi.MaxKey || len(s.Value) > abi.MaxValue {
			c.errorf(nil, "a key of %d bytes with a value of %d: a guest reads keys up to %d bytes and values up to %d",
				len(s.Key), len(s.Value), abi.MaxKey, abi.MaxValue)
		}
	}
	return out
}

func flatten(out []Setting, path []string, v any) []Setting {
	add := func(text string) []Setting { return append(out, Setting{dotted(path...), text}) }
	switch v := v.(type) {
	case string:
		return add(v)
	case int64:
		return add(strconv.FormatInt(v, 10))
	case float64:
		return add(number(v))
	case bool:
		return add(strconv.FormatBool(v))
	case time.Time:
		return add(moment(v))
	case []any:
		if len(v) == 0 {
			return add("[]")
		}
		for i, element := range v {
			out = flatten(out, join(path, strconv.Itoa(i)), element)
		}
	case []map[string]any:
		for i, element := range v {
			out = flatten(out, join(path, strconv.Itoa(i)), element)
		}
	case map[string]any:
		if len(v) == 0 {
			return add("{}")
		}
		for key, element := range v {
			out = flatten(out, join(path, key), element)
		}
	}
	return out
}

// moment writes a date or time as TOML does. The library marks those without
// an offset by the name of their zone.
func moment(t time.Time) string {
	switch t.Location().String() {
	case "datetime-local":
		return t.Format("2006-01-02T15:04:05.999999999")
	case "date-local":
		return t.Format(time.DateOnly)
	case "time-local":
		return t.Format("15:04:05.999999999")
	}
	return t.Format(time.RFC3339Nano)
}
