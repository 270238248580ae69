package subject

import (
	"reflect"
	"sync"
)

// maxDepth is how deep fits looks. JSON that is deeper is found out by making
// it.
const maxDepth = 1000

// fits takes the bytes of all text in a value from what is left, and reports
// false as soon as that is not enough.
func fits(v reflect.Value, left *int, depth int) bool {
	if depth == 0 {
		return true
	}
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len()
	case reflect.Interface, reflect.Pointer:
		return fits(v.Elem(), left, depth-1)
	case reflect.Struct:
		for _, index := range textsOf(v.Type()) {
			if at, err := v.FieldByIndexErr(index); err == nil && !fits(at, left, depth-1) {
				return false
			}
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			if !fits(it.Value(), left, depth-1) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			*left -= v.Len()
			break
		}
		for i := range v.Len() {
			if !fits(v.Index(i), left, depth-1) {
				return false
			}
		}
	}
	return *left >= 0
}

var texts sync.Map // reflect.Type -> [][]int

// textsOf finds the fields of a struct that JSON knows and that may hold text.
func textsOf(t reflect.Type) [][]int {
	if known, ok := texts.Load(t); ok {
		return known.([][]int)
	}
	var list [][]int
	for _, f := range tableOf(t) {
		switch t.FieldByIndex(f.index).Type.Kind() {
		case reflect.String, reflect.Interface, reflect.Pointer, reflect.Struct, reflect.Map, reflect.Slice, reflect.Array:
			list = append(list, f.index)
		}
	}
	known, _ := texts.LoadOrStore(t, list)
	return known.([][]int)
}
