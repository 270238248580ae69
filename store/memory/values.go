package memory

import (
	"bytes"
	"context"
	"time"

	"github.com/hookhost/hookhost/store"
)

func valueKey(k store.ValueKey) store.ValueKey {
	k.Owner = k.Owner.Key()
	return k
}

// GetValue implements store.Values.
func (s *Store) GetValue(ctx context.Context, k store.ValueKey) (value []byte, found bool, err error) {
	if err := k.Validate(); err != nil {
		return nil, false, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return nil, false, err
	}
	defer s.mu.Unlock()

	value, found = s.values.get(valueKey(k), now)
	return bytes.Clone(value), found, nil
}

// PutValue implements store.Values.
func (s *Store) PutValue(ctx context.Context, k store.ValueKey, value []byte, ttl time.Duration) error {
	if err := k.Validate(); err != nil {
		return err
	}
	if err := store.CheckExpiry("ttl", ttl); err != nil {
		return err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()

	s.values.put(valueKey(k), append([]byte{}, value...), after(now, store.MillisOf(ttl)))
	return nil
}
