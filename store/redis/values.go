package redis

import (
	"context"
	"time"

	"github.com/hookhost/hookhost/store"
)

// GetValue implements store.Values.
func (s *Store) GetValue(ctx context.Context, k store.ValueKey) (value []byte, found bool, err error) {
	if err := k.Validate(); err != nil {
		return nil, false, err
	}
	return s.bytes(ctx, "value_get", s.owned(k.Owner).value(k))
}

// PutValue implements store.Values.
func (s *Store) PutValue(ctx context.Context, k store.ValueKey, value []byte, ttl time.Duration) error {
	if err := k.Validate(); err != nil {
		return err
	}
	if err := store.CheckExpiry("ttl", ttl); err != nil {
		return err
	}
	_, err := s.ask(ctx, "value_put", []string{s.owned(k.Owner).value(k)}, value, store.MillisOf(ttl))
	return err
}
