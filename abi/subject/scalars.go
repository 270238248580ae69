package subject

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Scalars lists every string and number in a value at any depth, with its
// pointer: strings as they are, numbers in their JSON form, maps by the order
// of their keys. Byte slices are binary and have none.
func Scalars(value any, pointer string, emit func(pointer, text string, number bool)) {
	scalars(reflect.ValueOf(value), pointer, emit)
}

func scalars(v reflect.Value, pointer string, emit func(pointer, text string, number bool)) {
	v = deref(v)
	if !v.IsValid() {
		return
	}
	switch v.Kind() {
	case reflect.String:
		_, number := v.Interface().(json.Number)
		emit(pointer, v.String(), number)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		emit(pointer, strconv.FormatInt(v.Int(), 10), true)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		emit(pointer, strconv.FormatUint(v.Uint(), 10), true)
	case reflect.Float32, reflect.Float64:
		if text, err := json.Marshal(v.Interface()); err == nil {
			emit(pointer, string(text), true)
		}
	case reflect.Map:
		if v.Type().Key().Kind() != reflect.String {
			return
		}
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, k := range keys {
			scalars(v.MapIndex(k), Join(pointer, k.String()), emit)
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			scalars(v.Index(i), JoinIndex(pointer, i), emit)
		}
	case reflect.Struct:
		for _, name := range namesOf(v.Type()) {
			f, _ := fieldOf(v.Type(), name)
			if at, err := v.FieldByIndexErr(f.index); err == nil && !(f.omitEmpty && at.IsZero()) {
				scalars(at, Join(pointer, name), emit)
			}
		}
	}
}
