package subject

import (
	"encoding/json"
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

// edit makes a copy of the value with one edit, sharing all that it does not
// touch.
func edit(value any, e abi.Edit) (any, error) {
	tokens, err := parse(e.Pointer)
	if err != nil {
		return nil, err
	}
	v := reflect.ValueOf(value)
	if len(tokens) == 0 {
		return whole(v, e)
	}
	next, err := rebuild(v, tokens, func(container reflect.Value, token string) (reflect.Value, error) {
		return put(container, token, e)
	})
	if err != nil {
		return nil, err
	}
	return next.Interface(), nil
}

// whole replaces the document. There is always one: it cannot be removed, and
// null is none.
func whole(v reflect.Value, e abi.Edit) (any, error) {
	if e.Op == abi.EditRemove || !v.IsValid() {
		return nil, fmt.Errorf("%w: the whole cannot be removed", abi.ErrBadEdit)
	}
	next, err := decode(v.Type(), e.Value)
	if err != nil {
		return nil, err
	}
	if k := next.Kind(); (k == reflect.Pointer || k == reflect.Map || k == reflect.Slice || k == reflect.Interface) && next.IsNil() {
		return nil, fmt.Errorf("%w: the whole cannot be null", abi.ErrBadEdit)
	}
	return next.Interface(), nil
}

// setText replaces the string, or the number, at a pointer with a text.
func setText(value any, pointer, text string) (any, error) {
	tokens, err := parse(pointer)
	if err != nil {
		return nil, err
	}
	if len(tokens) == 0 {
		return nil, abi.ErrBadEdit
	}
	next, err := rebuild(reflect.ValueOf(value), tokens, func(container reflect.Value, token string) (reflect.Value, error) {
		return place(container, token, func(slot reflect.Type) (reflect.Value, error) {
			switch {
			case slot.Kind() == reflect.String && slot != reflect.TypeFor[json.Number]():
				return reflect.ValueOf(text).Convert(slot), nil
			case slot.Kind() == reflect.Interface && reflect.TypeFor[string]().AssignableTo(slot):
				return reflect.ValueOf(text), nil
			}
			return reflect.Value{}, fmt.Errorf("%w: no text fits a %s", abi.ErrBadEdit, slot)
		})
	})
	if err != nil {
		return nil, err
	}
	return next.Interface(), nil
}

// rebuild copies the containers along the path, from the outside in, and lets
// change make the innermost one anew.
func rebuild(v reflect.Value, tokens []string, change func(container reflect.Value, token string) (reflect.Value, error)) (reflect.Value, error) {
	if !v.IsValid() {
		return v, abi.ErrNotFound
	}
	switch v.Kind() {
	case reflect.Interface:
		return rebuild(v.Elem(), tokens, change)
	case reflect.Pointer:
		if v.IsNil() {
			return v, abi.ErrNotFound
		}
		inner, err := rebuild(v.Elem(), tokens, change)
		if err != nil {
			return v, err
		}
		next := reflect.New(v.Type().Elem())
		next.Elem().Set(inner)
		return next, nil
	}
	if len(tokens) == 1 {
		return change(v, tokens[0])
	}
	at, err := child(v, tokens[0])
	if err != nil {
		return v, err
	}
	inner, err := rebuild(at, tokens[1:], change)
	if err != nil {
		return v, err
	}
	return place(v, tokens[0], func(reflect.Type) (reflect.Value, error) { return inner, nil })
}

// place makes a copy of a container with another value at a token that is
// there, or for a map or a struct field that may be.
func place(container reflect.Value, token string, fill func(slot reflect.Type) (reflect.Value, error)) (reflect.Value, error) {
	switch container.Kind() {
	case reflect.Struct:
		f, ok := fieldOf(container.Type(), token)
		if !ok {
			return container, abi.ErrNotFound
		}
		next := reflect.New(container.Type()).Elem()
		next.Set(container)
		slot, err := ownField(next, f.index)
		if err != nil {
			return container, err
		}
		value, err := fill(slot.Type())
		if err != nil {
			return container, err
		}
		slot.Set(value)
		return next, nil
	case reflect.Map:
		t := container.Type()
		if t.Key().Kind() != reflect.String {
			return container, abi.ErrBadEdit
		}
		value, err := fill(t.Elem())
		if err != nil {
			return container, err
		}
		next := copyMap(container)
		next.SetMapIndex(reflect.ValueOf(token).Convert(t.Key()), value)
		return next, nil
	case reflect.Slice, reflect.Array:
		i, ok := index(token, container.Len()-1)
		if !ok {
			return container, abi.ErrNotFound
		}
		value, err := fill(container.Type().Elem())
		if err != nil {
			return container, err
		}
		next := reflect.New(container.Type()).Elem()
		if container.Kind() == reflect.Slice {
			next.Set(reflect.MakeSlice(container.Type(), container.Len(), container.Len()))
		}
		reflect.Copy(next, container)
		next.Index(i).Set(value)
		return next, nil
	}
	return container, abi.ErrNotFound
}

// ownField finds a field in a struct that was just copied. A pointer to an
// embedded struct on the way is shared with the original and copied as well.
func ownField(v reflect.Value, path []int) (reflect.Value, error) {
	for i, at := range path {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() || !v.CanSet() {
				return v, fmt.Errorf("%w: a field of an embedded %s", abi.ErrBadEdit, v.Type())
			}
			own := reflect.New(v.Type().Elem())
			own.Elem().Set(v.Elem())
			v.Set(own)
			v = own.Elem()
		}
		v = v.Field(at)
	}
	return v, nil
}

func copyMap(m reflect.Value) reflect.Value {
	next := reflect.MakeMapWithSize(m.Type(), m.Len()+1)
	for it := m.MapRange(); it.Next(); {
		next.SetMapIndex(it.Key(), it.Value())
	}
	return next
}

// put does what RFC 6902 says for add, remove and replace.
func put(container reflect.Value, token string, e abi.Edit) (reflect.Value, error) {
	switch e.Op {
	case abi.EditRemove:
		return remove(container, token)
	case abi.EditAdd:
		if container.Kind() == reflect.Slice {
			return insert(container, token, e.Value)
		}
	case abi.EditReplace:
		if _, err := child(container, token); err != nil {
			return container, err
		}
	default:
		return container, fmt.Errorf("%w: no edit has the number %d", abi.ErrBadEdit, e.Op)
	}
	return place(container, token, func(slot reflect.Type) (reflect.Value, error) { return decode(slot, e.Value) })
}

func insert(list reflect.Value, token string, doc []byte) (reflect.Value, error) {
	i, ok := list.Len(), token == "-"
	if !ok {
		i, ok = index(token, list.Len())
	}
	if !ok {
		return list, abi.ErrNotFound
	}
	value, err := decode(list.Type().Elem(), doc)
	if err != nil {
		return list, err
	}
	next := reflect.MakeSlice(list.Type(), 0, list.Len()+1)
	next = reflect.AppendSlice(next, list.Slice(0, i))
	next = reflect.Append(next, value)
	return reflect.AppendSlice(next, list.Slice(i, list.Len())), nil
}

func remove(container reflect.Value, token string) (reflect.Value, error) {
	if _, err := child(container, token); err != nil {
		return container, err
	}
	switch container.Kind() {
	case reflect.Map:
		next := copyMap(container)
		next.SetMapIndex(reflect.ValueOf(token).Convert(container.Type().Key()), reflect.Value{})
		return next, nil
	case reflect.Slice:
		i, _ := index(token, container.Len()-1)
		next := reflect.MakeSlice(container.Type(), 0, container.Len()-1)
		next = reflect.AppendSlice(next, container.Slice(0, i))
		return reflect.AppendSlice(next, container.Slice(i+1, container.Len())), nil
	}
	return place(container, token, func(slot reflect.Type) (reflect.Value, error) { return reflect.Zero(slot), nil })
}

func decode(t reflect.Type, doc []byte) (reflect.Value, error) {
	value := reflect.New(t)
	if err := json.Unmarshal(doc, value.Interface()); err != nil {
		return value, fmt.Errorf("%w: %w", abi.ErrBadEdit, err)
	}
	return value.Elem(), nil
}
