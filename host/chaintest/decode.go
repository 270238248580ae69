package chaintest

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/hookhost/hookhost/chain/manifest"
)

// place is where a table stands in its file: the keys from the top. A struct
// that has a field of this type gets it filled.
type place []string

// decoder puts a document into structs, strictly: what does not fit is blamed
// at its place, all of it at once.
type decoder struct {
	doc    *manifest.Document
	faults []*manifest.Error
}

func (d *decoder) blame(at []string, format string, args ...any) {
	d.faults = append(d.faults, d.doc.Errorf(at, format, args...))
}

func below(at []string, key string) []string { return append(slices.Clone(at), key) }

// decode sets dst, whose place in the document is at, to a TOML value.
func (d *decoder) decode(at []string, v any, dst reflect.Value) {
	if text, is := dst.Addr().Interface().(encoding.TextUnmarshaler); is {
		s, isText := v.(string)
		if !isText {
			d.faults = append(d.faults, d.doc.Mismatch(at, "a text", v))
		} else if err := text.UnmarshalText([]byte(s)); err != nil {
			d.blame(at, "%w", err)
		}
		return
	}
	switch dst.Kind() {
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		d.decode(at, v, dst.Elem())
	case reflect.Interface:
		dst.Set(reflect.ValueOf(v))
	case reflect.Struct:
		d.table(at, v, func(key string, v any) { d.field(at, key, v, dst) })
		d.setPlace(at, dst)
	case reflect.Map:
		dst.Set(reflect.MakeMap(dst.Type()))
		d.table(at, v, func(key string, v any) {
			element := reflect.New(dst.Type().Elem()).Elem()
			d.decode(below(at, key), v, element)
			dst.SetMapIndex(reflect.ValueOf(key), element)
		})
	case reflect.Slice:
		d.list(at, v, dst)
	default:
		d.scalar(at, v, dst)
	}
}

func (d *decoder) table(at []string, v any, each func(key string, v any)) {
	values, is := v.(map[string]any)
	if !is {
		d.faults = append(d.faults, d.doc.Mismatch(at, "a table", v))
		return
	}
	for key, value := range values {
		each(key, value)
	}
}

func (d *decoder) field(at []string, key string, v any, dst reflect.Value) {
	var known []string
	for i := range dst.NumField() {
		name := dst.Type().Field(i).Tag.Get("toml")
		switch name {
		case key:
			d.decode(below(at, key), v, dst.Field(i))
			return
		case "", "-":
		default:
			known = append(known, name)
		}
	}
	d.faults = append(d.faults, d.doc.UnknownKey(below(at, key), known))
}

func (d *decoder) setPlace(at []string, dst reflect.Value) {
	for i := range dst.NumField() {
		if dst.Type().Field(i).Type == reflect.TypeFor[place]() {
			dst.Field(i).Set(reflect.ValueOf(place(at)))
		}
	}
}

// list takes arrays of tables as well as lists.
func (d *decoder) list(at []string, v any, dst reflect.Value) {
	from := reflect.ValueOf(v)
	if from.Kind() != reflect.Slice {
		d.faults = append(d.faults, d.doc.Mismatch(at, "a list", v))
		return
	}
	dst.Set(reflect.MakeSlice(dst.Type(), from.Len(), from.Len()))
	for i := range from.Len() {
		d.decode(below(at, strconv.Itoa(i)), from.Index(i).Interface(), dst.Index(i))
	}
}

func (d *decoder) scalar(at []string, v any, dst reflect.Value) {
	from := reflect.ValueOf(v)
	switch {
	case dst.CanInt() && from.CanInt():
		if dst.OverflowInt(from.Int()) {
			d.blame(at, "%d is out of range", from.Int())
			return
		}
		dst.SetInt(from.Int())
	case dst.Kind() == from.Kind():
		dst.Set(from.Convert(dst.Type()))
	default:
		d.faults = append(d.faults, d.doc.Mismatch(at, wanted(dst.Kind()), v))
	}
}

func wanted(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "a whole number"
	}
	panic(fmt.Sprintf("chaintest: no field may be a %s", k))
}
