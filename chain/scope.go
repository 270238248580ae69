package chain

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/hookhost/hookhost/abi"
)

// maxKeys bounds the state keys that one stage can have in one scope.
const maxKeys = 256

// Errors of state.
var (
	ErrStateFull = errors.New("state: over its limit")
	ErrStateType = errors.New("state: not a number")
)

// scope holds what lives as long as an operation: state by stage, and owned
// resources. It is the abi.Scope that guests' host functions see.
type scope struct {
	id string

	mu    sync.Mutex
	state map[string]map[string][]byte
	owned map[string]func(context.Context, abi.Ending)
	order []string // of owned: released in the order they came
	ended bool
	end   abi.Ending
}

func (s *scope) ID() string { return s.id }

func (s *scope) Get(stage, key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.state[stage][key]
	return v, ok
}

func (s *scope) Set(stage, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.set(stage, key, append([]byte(nil), value...))
}

func (s *scope) set(stage, key string, value []byte) error {
	if s.ended {
		return nil // freed already; nobody can read it any more
	}
	keys := s.state[stage]
	if _, there := keys[key]; !there && len(keys) >= maxKeys || len(value) > abi.MaxState || len(key) > abi.MaxKey {
		return fmt.Errorf("scope[%s]: %w", s.id, ErrStateFull)
	}
	if keys == nil {
		if s.state == nil {
			s.state = make(map[string]map[string][]byte)
		}
		keys = make(map[string][]byte)
		s.state[stage] = keys
	}
	keys[key] = value
	return nil
}

func (s *scope) Delete(stage, key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state[stage], key)
}

// Add keeps its numbers as eight little-endian bytes, saturating.
func (s *scope) Add(stage, key string, delta int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int64
	if v, ok := s.state[stage][key]; ok {
		if len(v) != 8 {
			return 0, fmt.Errorf("scope[%s]: %w", s.id, ErrStateType)
		}
		n = int64(binary.LittleEndian.Uint64(v))
	}
	n = saturatingAdd(n, delta)
	return n, s.set(stage, key, binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func saturatingAdd(a, b int64) int64 {
	switch sum := a + b; {
	case b > 0 && sum < a:
		return math.MaxInt64
	case b < 0 && sum > a:
		return math.MinInt64
	default:
		return sum
	}
}

func (s *scope) Own(key string, release func(context.Context, abi.Ending)) {
	s.mu.Lock()
	if s.ended {
		end := s.end
		s.mu.Unlock()
		release(context.Background(), end)
		return
	}
	defer s.mu.Unlock()
	if s.owned == nil {
		s.owned = make(map[string]func(context.Context, abi.Ending))
	}
	if _, there := s.owned[key]; !there {
		s.order = append(s.order, key)
	}
	s.owned[key] = release
}

func (s *scope) Disown(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.owned, key)
}

// finish frees the state and releases what is owned, once.
func (s *scope) finish(ctx context.Context, end abi.Ending) {
	s.mu.Lock()
	if s.ended {
		s.mu.Unlock()
		return
	}
	s.ended, s.end, s.state = true, end, nil
	order, owned := s.order, s.owned
	s.order, s.owned = nil, nil
	s.mu.Unlock()
	for _, key := range slices.Backward(order) {
		if release, ok := owned[key]; ok {
			defer release(ctx, end) // so they run in their order, each though another panics
			delete(owned, key)
		}
	}
}
