package subject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/hookhost/hookhost/abi"
)

// Decode reads a JSON document into what a pointer points to, over what is
// there. Go reads null in a list of structs as a pointer to nothing, which
// those who range over the list do not expect: it is ErrBadEdit, as is
// null for the whole.
func Decode(doc []byte, into any) error {
	if string(bytes.TrimSpace(doc)) == "null" {
		return errNull
	}
	if err := json.Unmarshal(doc, into); err != nil {
		return fmt.Errorf("%w: %w", abi.ErrBadEdit, err)
	}
	return withoutNulls(reflect.ValueOf(into))
}

func decode(t reflect.Type, doc []byte) (reflect.Value, error) {
	value := reflect.New(t)
	if err := json.Unmarshal(doc, value.Interface()); err != nil {
		return value, fmt.Errorf("%w: %w", abi.ErrBadEdit, err)
	}
	return value.Elem(), withoutNulls(value.Elem())
}

// decodeElement reads an element of a list or a map.
func decodeElement(t reflect.Type, doc []byte) (reflect.Value, error) {
	value, err := decode(t, doc)
	if err == nil && isNull(value) {
		err = errNull
	}
	return value, err
}

var errNull = fmt.Errorf("%w: null in place of an object", abi.ErrBadEdit)

// withoutNulls looks for pointers to nothing in lists and maps. What was
// decoded into an interface has none.
func withoutNulls(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			return withoutNulls(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if err := withoutNulls(v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Slice, reflect.Array:
		if !holdsStructs(v.Type()) {
			return nil
		}
		for i := range v.Len() {
			if err := elementWithoutNulls(v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		if !holdsStructs(v.Type()) {
			return nil
		}
		for it := v.MapRange(); it.Next(); {
			if err := elementWithoutNulls(it.Value()); err != nil {
				return err
			}
		}
	}
	return nil
}

func elementWithoutNulls(v reflect.Value) error {
	if isNull(v) {
		return errNull
	}
	return withoutNulls(v)
}

// holdsStructs reports whether the elements can be, or hold, pointers.
func holdsStructs(t reflect.Type) bool {
	switch t.Elem().Kind() {
	case reflect.Pointer, reflect.Struct, reflect.Slice, reflect.Array, reflect.Map:
		return true
	}
	return false
}

func isNull(v reflect.Value) bool { return v.Kind() == reflect.Pointer && v.IsNil() }
