package subject

import "reflect"

// Clone makes a deep copy of maps, slices and structs, and of the structs
// that pointers in them point to. Unexported fields are shared.
func Clone(value any) any {
	if value == nil {
		return nil
	}
	return clone(reflect.ValueOf(value)).Interface()
}

func clone(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Map:
		if v.IsNil() {
			return v
		}
		next := reflect.MakeMapWithSize(v.Type(), v.Len())
		for it := v.MapRange(); it.Next(); {
			next.SetMapIndex(it.Key(), clone(it.Value()))
		}
		return next
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		next := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			next.Index(i).Set(clone(v.Index(i)))
		}
		return next
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return clone(v.Elem())
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return v
		}
		next := reflect.New(v.Type().Elem())
		next.Elem().Set(clone(v.Elem()))
		return next
	case reflect.Struct:
		next := reflect.New(v.Type()).Elem()
		next.Set(v)
		for i := range v.NumField() {
			if f := next.Field(i); f.CanSet() {
				f.Set(clone(v.Field(i)))
			}
		}
		return next
	}
	return v
}
