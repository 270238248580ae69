package memory

import (
	"bytes"
	"context"
	"time"

	"github.com/hookhost/hookhost/store"
)

// claim is what is remembered about a key: that it is held, what it came to,
// or that its holder gave it back.
type claim struct {
	token     int64
	holder    string
	ended     bool
	completed bool
	result    []byte
}

func claimKey(k store.ClaimKey) store.ClaimKey {
	k.Owner = k.Owner.Key()
	return k
}

// Claim implements store.Claims. Tokens come from one counter for all keys, so
// that they never restart however much about a key was forgotten.
func (s *Store) Claim(ctx context.Context, k store.ClaimKey, holder string, ttl time.Duration) (store.Claim, error) {
	if err := k.Validate(); err != nil {
		return store.Claim{}, err
	}
	if err := store.CheckHolder(holder, ttl); err != nil {
		return store.Claim{}, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return store.Claim{}, err
	}
	defer s.mu.Unlock()

	c, known := s.claims.get(claimKey(k), now)
	switch {
	case known && c.completed:
		return store.Claim{State: store.Completed, Result: bytes.Clone(c.result)}, nil
	case known && !c.ended && c.holder != holder:
		return store.Claim{State: store.HeldElsewhere, Holder: c.holder}, nil
	case !known || c.ended:
		s.token++
		c = claim{token: s.token, holder: holder}
	}
	s.claims.put(claimKey(k), c, after(now, store.MillisOf(ttl)))
	return store.Claim{State: store.Claimed, Token: c.token}, nil
}

// RenewClaim implements store.Claims.
func (s *Store) RenewClaim(ctx context.Context, k store.ClaimKey, token int64, ttl time.Duration) error {
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

	c, known := s.claims.get(claimKey(k), now)
	if !known || c.ended || c.token != token {
		return store.ErrFenced
	}
	s.claims.put(claimKey(k), c, after(now, store.MillisOf(ttl)))
	return nil
}

// EndClaim implements store.Claims. The token that ended a claim may end it
// again, which changes nothing.
func (s *Store) EndClaim(ctx context.Context, k store.ClaimKey, token int64, result []byte, retention time.Duration) error {
	if err := k.Validate(); err != nil {
		return err
	}
	if result == nil {
		retention = store.Remembered
	} else if err := store.CheckExpiry("retention", retention); err != nil {
		return err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()

	c, known := s.claims.get(claimKey(k), now)
	if !known || c.token != token {
		return store.ErrFenced
	}
	if !c.ended {
		c = claim{token: token, ended: true, completed: result != nil, result: bytes.Clone(result)}
		s.claims.put(claimKey(k), c, after(now, store.MillisOf(retention)))
	}
	return nil
}

// ClaimResult implements store.Claims.
func (s *Store) ClaimResult(ctx context.Context, k store.ClaimKey) (result []byte, done bool, err error) {
	if err := k.Validate(); err != nil {
		return nil, false, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return nil, false, err
	}
	defer s.mu.Unlock()

	c, _ := s.claims.get(claimKey(k), now)
	return bytes.Clone(c.result), c.completed, nil
}
