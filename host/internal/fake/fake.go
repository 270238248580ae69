// Package fake has what stands around the functions and the sandbox in their
// tests: a scope, a subject, plans and a store, all of plain maps.
package fake

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/host/hostfn"
)

// Scope is an operation or a run.
type Scope struct {
	Name string

	mu    sync.Mutex
	state map[string][]byte
	owned map[string]func(context.Context, abi.Ending)
}

// NewScope makes an open scope.
func NewScope(id string) *Scope {
	return &Scope{Name: id, state: map[string][]byte{}, owned: map[string]func(context.Context, abi.Ending){}}
}

// ID implements abi.Scope.
func (s *Scope) ID() string { return s.Name }

// Get implements abi.Scope.
func (s *Scope) Get(stage, key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.state[stage+"/"+key]
	return v, ok
}

// Set implements abi.Scope.
func (s *Scope) Set(stage, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state[stage+"/"+key] = value
	return nil
}

// Delete implements abi.Scope.
func (s *Scope) Delete(stage, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state, stage+"/"+key)
}

// Add implements abi.Scope.
func (s *Scope) Add(stage, key string, delta int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.state[stage+"/"+key]
	n := int64(0)
	if old != nil {
		var err error
		if n, err = strconv.ParseInt(string(old), 10, 64); err != nil {
			return 0, err
		}
	}
	n += delta
	s.state[stage+"/"+key] = strconv.AppendInt(nil, n, 10)
	return n, nil
}

// Own implements abi.Scope.
func (s *Scope) Own(key string, release func(context.Context, abi.Ending)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owned[key] = release
}

// Disown implements abi.Scope.
func (s *Scope) Disown(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, key)
}

// Owned counts what the scope would release.
func (s *Scope) Owned() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.owned)
}

// End releases everything.
func (s *Scope) End(e abi.Ending) {
	s.mu.Lock()
	owned := s.owned
	s.owned = map[string]func(context.Context, abi.Ending){}
	s.mu.Unlock()
	for _, release := range owned {
		release(context.Background(), e)
	}
}

// Subject has leaves and values by pointer, and is never changed.
type Subject struct {
	Texts  []abi.Leaf
	Values map[string]any
}

// Leaves implements abi.Subject.
func (s *Subject) Leaves() []abi.Leaf { return s.Texts }

// Get implements abi.Subject.
func (s *Subject) Get(pointer string, _ int) ([]byte, error) {
	v, ok := s.Values[pointer]
	if !ok {
		return nil, abi.ErrNotFound
	}
	return json.Marshal(v)
}

// Apply implements abi.Subject.
func (s *Subject) Apply([]abi.Edit) (abi.Subject, error) { return nil, errors.New("not here") }

// Value implements abi.Subject.
func (s *Subject) Value() any { return s.Values }

// Plans has one plan for everybody. Its keys are NAME or NAME:SCOPE.
type Plans map[string]hostfn.Limit

// Plan implements hostfn.Plans.
func (p Plans) Plan(context.Context, string, string) string { return "free" }

// Version implements hostfn.Plans.
func (p Plans) Version() string { return "v-1" }

// Limit implements hostfn.Plans.
func (p Plans) Limit(_ context.Context, _, _, name, scope string) (hostfn.Limit, bool) {
	if scope != "" {
		name += ":" + scope
	}
	l, ok := p[name]
	return l, ok
}
