package subject

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

type field struct {
	index     []int
	omitEmpty bool
}

var fields sync.Map // reflect.Type -> map[string]field

// fieldOf finds the field of a struct that JSON knows by this name.
func fieldOf(t reflect.Type, name string) (field, bool) {
	f, ok := tableOf(t)[name]
	return f, ok
}

// tableOf has the fields of a struct by the names that JSON knows them by.
func tableOf(t reflect.Type) map[string]field {
	known, ok := fields.Load(t)
	if !ok {
		known, _ = fields.LoadOrStore(t, fieldsOf(t))
	}
	return known.(map[string]field)
}

// namesOf lists the names that JSON knows the fields of a struct by, in their
// order.
func namesOf(t reflect.Type) []string {
	table := tableOf(t)
	names := make([]string, 0, len(table))
	for name := range table {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return slices.Compare(table[a].index, table[b].index) })
	return names
}

func fieldsOf(t reflect.Type) map[string]field {
	all := make(map[string]field)
	for _, f := range reflect.VisibleFields(t) {
		name, rest, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" || f.Anonymous && name == "" {
			continue
		}
		if name == "" {
			name = f.Name
		}
		omit := strings.Contains(rest, "omitempty") || strings.Contains(rest, "omitzero")
		if old, there := all[name]; there && len(old.index) <= len(f.Index) {
			continue
		}
		all[name] = field{index: f.Index, omitEmpty: omit}
	}
	return all
}
