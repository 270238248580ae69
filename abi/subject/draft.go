package subject

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/hookhost/hookhost/abi"
)

// draft is a value in the course of its edits. It copies a container when it
// first writes to it, and from then on writes in place, so that many edits
// cost no more than one copy of what they touch.
type draft struct {
	root reflect.Value // settable
	own  map[uintptr]bool
	work int // done so far
}

// maxWork bounds what all edits of a draft may cost, in about nanoseconds: they
// are applied when their stage has returned, and its time does not count any
// more. 65,536 edits near the root take two thirds of it; as many insertions at
// the head of a growing list would take a second.
const (
	maxWork  = 64_000_000
	editWork = 500 // for one edit, and so much more:
	stepWork = 50  // for a step of its pointer,
	moveRate = 16  // for that many bytes of a list that make room or close up
)

func (d *draft) spend(work int) error {
	if d.work += work; d.work > maxWork {
		return fmt.Errorf("%w: too much work for one draft", abi.ErrBadEdit)
	}
	return nil
}

func newDraft(value any) *draft {
	d := &draft{own: make(map[uintptr]bool)}
	if v := reflect.ValueOf(value); v.IsValid() {
		d.root = reflect.New(v.Type()).Elem()
		d.root.Set(v)
	}
	return d
}

func (d *draft) value() any {
	if !d.root.IsValid() {
		return nil
	}
	return d.root.Interface()
}

// edit writes one edit.
func (d *draft) edit(e abi.Edit) error {
	tokens, err := parse(e.Pointer)
	if err != nil {
		return err
	}
	if err := d.spend(editWork + stepWork*len(tokens)); err != nil {
		return err
	}
	if len(tokens) == 0 {
		return d.whole(e)
	}
	return d.reach(d.root, tokens, func(container reflect.Value, token string) error {
		return d.put(container, token, e)
	})
}

// whole replaces the document. There is always one: it cannot be removed, and
// null is none.
func (d *draft) whole(e abi.Edit) error {
	if e.Op == abi.EditRemove || !d.root.IsValid() {
		return fmt.Errorf("%w: the whole cannot be removed", abi.ErrBadEdit)
	}
	next := reflect.New(d.root.Type())
	if err := Decode(e.Value, next.Interface()); err != nil {
		return err
	}
	d.root.Set(next.Elem())
	return nil
}

// setText replaces the string, or the number, at a pointer with a text.
func (d *draft) setText(pointer, text string) error {
	tokens, err := parse(pointer)
	if err != nil {
		return err
	}
	if len(tokens) == 0 {
		return abi.ErrBadEdit
	}
	return d.reach(d.root, tokens, func(container reflect.Value, token string) error {
		return d.place(container, token, func(slot reflect.Type) (reflect.Value, error) {
			switch {
			case slot.Kind() == reflect.String && slot != reflect.TypeFor[json.Number]():
				return reflect.ValueOf(text).Convert(slot), nil
			case slot.Kind() == reflect.Interface && reflect.TypeFor[string]().AssignableTo(slot):
				return reflect.ValueOf(text), nil
			}
			return reflect.Value{}, fmt.Errorf("%w: no text fits a %s", abi.ErrBadEdit, slot)
		})
	})
}

// reach goes down the path, makes each container on it the draft's own, and
// lets change write to the innermost one. The slot is settable.
func (d *draft) reach(slot reflect.Value, tokens []string, change func(container reflect.Value, token string) error) error {
	switch slot.Kind() {
	case reflect.Invalid:
		return abi.ErrNotFound
	case reflect.Interface:
		return d.through(slot.Elem(), slot.Set, tokens, change)
	case reflect.Pointer:
		if slot.IsNil() {
			return abi.ErrNotFound
		}
		d.acquire(slot)
		return d.reach(slot.Elem(), tokens, change)
	}
	if len(tokens) == 1 {
		d.acquire(slot)
		return change(slot, tokens[0])
	}
	if _, err := child(slot, tokens[0]); err != nil {
		return err
	}
	d.acquire(slot)
	switch slot.Kind() {
	case reflect.Map:
		key := keyOf(slot, tokens[0])
		return d.through(slot.MapIndex(key), func(v reflect.Value) { slot.SetMapIndex(key, v) }, tokens[1:], change)
	case reflect.Struct:
		f, _ := fieldOf(slot.Type(), tokens[0])
		at, err := d.ownField(slot, f.index)
		if err != nil {
			return err
		}
		return d.reach(at, tokens[1:], change)
	}
	i, _ := index(tokens[0], slot.Len()-1)
	return d.reach(slot.Index(i), tokens[1:], change)
}

// through reaches into a value that Go does not let anybody write to where it
// stands, and puts it back.
func (d *draft) through(v reflect.Value, back func(reflect.Value), tokens []string, change func(reflect.Value, string) error) error {
	if !v.IsValid() {
		return abi.ErrNotFound
	}
	box := reflect.New(v.Type()).Elem()
	box.Set(v)
	if err := d.reach(box, tokens, change); err != nil {
		return err
	}
	back(box)
	return nil
}

// acquire makes the pointer, map or slice in a slot the draft's own. Structs
// and arrays are part of what holds them.
func (d *draft) acquire(slot reflect.Value) {
	switch slot.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice:
	default:
		return
	}
	if !slot.IsNil() && d.own[slot.Pointer()] {
		return
	}
	switch slot.Kind() {
	case reflect.Pointer:
		next := reflect.New(slot.Type().Elem())
		next.Elem().Set(slot.Elem())
		slot.Set(next)
	case reflect.Map:
		next := reflect.MakeMapWithSize(slot.Type(), slot.Len()+1)
		for it := slot.MapRange(); it.Next(); {
			next.SetMapIndex(it.Key(), it.Value())
		}
		slot.Set(next)
	case reflect.Slice:
		next := reflect.MakeSlice(slot.Type(), slot.Len(), slot.Len())
		reflect.Copy(next, slot)
		slot.Set(next)
	}
	d.own[slot.Pointer()] = true
}

// ownField finds a field in a struct. A pointer to an embedded struct on the
// way is a container as well.
func (d *draft) ownField(v reflect.Value, path []int) (reflect.Value, error) {
	for i, at := range path {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() || !v.CanSet() {
				return v, fmt.Errorf("%w: a field of an embedded %s", abi.ErrBadEdit, v.Type())
			}
			d.acquire(v)
			v = v.Elem()
		}
		v = v.Field(at)
	}
	return v, nil
}

// place writes a value at a token that is there, or for a map or a struct
// field that may be.
func (d *draft) place(container reflect.Value, token string, fill func(slot reflect.Type) (reflect.Value, error)) error {
	switch container.Kind() {
	case reflect.Struct:
		f, ok := fieldOf(container.Type(), token)
		if !ok {
			return abi.ErrNotFound
		}
		slot, err := d.ownField(container, f.index)
		if err != nil {
			return err
		}
		value, err := fill(slot.Type())
		if err != nil {
			return err
		}
		slot.Set(value)
		return nil
	case reflect.Map:
		if container.Type().Key().Kind() != reflect.String {
			return abi.ErrBadEdit
		}
		value, err := fill(container.Type().Elem())
		if err != nil {
			return err
		}
		container.SetMapIndex(keyOf(container, token), value)
		return nil
	case reflect.Slice, reflect.Array:
		i, ok := index(token, container.Len()-1)
		if !ok {
			return abi.ErrNotFound
		}
		value, err := fill(container.Type().Elem())
		if err != nil {
			return err
		}
		container.Index(i).Set(value)
		return nil
	}
	return abi.ErrNotFound
}

// put does what RFC 6902 says for add, remove and replace.
func (d *draft) put(container reflect.Value, token string, e abi.Edit) error {
	switch e.Op {
	case abi.EditRemove:
		return d.remove(container, token)
	case abi.EditAdd:
		if container.Kind() == reflect.Slice {
			return d.insert(container, token, e.Value)
		}
	case abi.EditReplace:
		if _, err := child(container, token); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%w: no edit has the number %d", abi.ErrBadEdit, e.Op)
	}
	return d.place(container, token, func(slot reflect.Type) (reflect.Value, error) {
		if container.Kind() == reflect.Struct {
			return decode(slot, e.Value)
		}
		return decodeElement(slot, e.Value)
	})
}

func (d *draft) insert(list reflect.Value, token string, doc []byte) error {
	i, ok := list.Len(), token == "-"
	if !ok {
		i, ok = index(token, list.Len())
	}
	if !ok {
		return abi.ErrNotFound
	}
	if err := d.spend((list.Len() - i) * int(list.Type().Elem().Size()) / moveRate); err != nil {
		return err
	}
	value, err := decodeElement(list.Type().Elem(), doc)
	if err != nil {
		return err
	}
	list.Set(reflect.Append(list, value))
	d.own[list.Pointer()] = true // it may have grown into another place
	reflect.Copy(list.Slice(i+1, list.Len()), list.Slice(i, list.Len()-1))
	list.Index(i).Set(value)
	return nil
}

func (d *draft) remove(container reflect.Value, token string) error {
	if _, err := child(container, token); err != nil {
		return err
	}
	switch container.Kind() {
	case reflect.Map:
		container.SetMapIndex(keyOf(container, token), reflect.Value{})
		return nil
	case reflect.Slice:
		last := container.Len() - 1
		i, _ := index(token, last)
		if err := d.spend((last - i) * int(container.Type().Elem().Size()) / moveRate); err != nil {
			return err
		}
		reflect.Copy(container.Slice(i, last), container.Slice(i+1, last+1))
		container.Index(last).SetZero()
		container.SetLen(last)
		return nil
	}
	return d.place(container, token, func(slot reflect.Type) (reflect.Value, error) { return reflect.Zero(slot), nil })
}

func keyOf(m reflect.Value, token string) reflect.Value {
	return reflect.ValueOf(token).Convert(m.Type().Key())
}
