package subject

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/hookhost/hookhost/abi"
)

// parse splits an RFC 6901 pointer into its tokens.
func parse(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("%w: a pointer begins with /", abi.ErrBadEdit)
	}
	tokens := strings.Split(pointer[1:], "/")
	for i, t := range tokens {
		tokens[i] = unescape.Replace(t)
		if strings.Count(t, "~") != strings.Count(t, "~0")+strings.Count(t, "~1") {
			return nil, fmt.Errorf("%w: ~ stands before 0 or 1", abi.ErrBadEdit)
		}
	}
	return tokens, nil
}

var (
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
)

// Join adds a token to a pointer.
func Join(pointer, token string) string { return pointer + "/" + escape.Replace(token) }

// JoinIndex adds an index to a pointer.
func JoinIndex(pointer string, i int) string { return pointer + "/" + strconv.Itoa(i) }

// get finds the value at a pointer. What JSON would leave out is not there.
func get(value any, pointer string) (any, error) {
	tokens, err := parse(pointer)
	if err != nil {
		return nil, err
	}
	v := reflect.ValueOf(value)
	for _, token := range tokens {
		if v, err = child(v, token); err != nil {
			return nil, err
		}
	}
	if !v.IsValid() {
		return nil, nil
	}
	return v.Interface(), nil
}

func child(v reflect.Value, token string) (reflect.Value, error) {
	v = deref(v)
	if !v.IsValid() {
		return v, abi.ErrNotFound
	}
	switch v.Kind() {
	case reflect.Struct:
		f, ok := fieldOf(v.Type(), token)
		if !ok {
			return v, abi.ErrNotFound
		}
		at, err := v.FieldByIndexErr(f.index)
		if err != nil || f.omitEmpty && at.IsZero() {
			return v, abi.ErrNotFound
		}
		return at, nil
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return v, abi.ErrNotFound
		}
		at := v.MapIndex(reflect.ValueOf(token).Convert(v.Type().Key()))
		if !at.IsValid() {
			return v, abi.ErrNotFound
		}
		return at, nil
	case reflect.Slice, reflect.Array:
		i, ok := index(token, v.Len()-1)
		if !ok {
			return v, abi.ErrNotFound
		}
		return v.Index(i), nil
	}
	return v, abi.ErrNotFound
}

func deref(v reflect.Value) reflect.Value {
	for v.IsValid() && (v.Kind() == reflect.Pointer || v.Kind() == reflect.Interface) {
		v = v.Elem()
	}
	return v
}

// index reads an array index as RFC 6901 has it: no sign, no leading zero.
func index(token string, last int) (int, bool) {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i > last || strconv.Itoa(i) != token {
		return 0, false
	}
	return i, true
}
