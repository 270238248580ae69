package redis

import (
	"context"
	"strconv"
	"time"

	"github.com/hookhost/hookhost/store"
)

// tokenLife is how long an owner's last token is known. After it a token is
// above it anyway, unless the server's clock went back.
const tokenLife = 31 * 24 * time.Hour

// Claim implements store.Claims.
func (s *Store) Claim(ctx context.Context, k store.ClaimKey, holder string, ttl time.Duration) (store.Claim, error) {
	if err := k.Validate(); err != nil {
		return store.Claim{}, err
	}
	if err := store.CheckHolder(holder, ttl); err != nil {
		return store.Claim{}, err
	}
	owner := s.owned(k.Owner)
	reply, err := s.ask(ctx, "claim", []string{owner.claim(k), owner.token()}, holder, store.MillisOf(ttl), tokenLife.Milliseconds())
	if err != nil {
		return store.Claim{}, err
	}
	c := store.Claim{State: store.ClaimState(reply.between(int64(store.Claimed), int64(store.Completed)))}
	c.Token, c.Holder = reply.number(), reply.text()
	if result := reply.text(); c.State == store.Completed {
		c.Result = []byte(result)
	}
	if err := reply.end(); err != nil {
		return store.Claim{}, err
	}
	return c, nil
}

// RenewClaim implements store.Claims.
func (s *Store) RenewClaim(ctx context.Context, k store.ClaimKey, token int64, ttl time.Duration) error {
	if err := k.Validate(); err != nil {
		return err
	}
	if err := store.CheckExpiry("ttl", ttl); err != nil {
		return err
	}
	return s.fenced(ctx, "claim_renew", k, strconv.FormatInt(token, 10), store.MillisOf(ttl))
}

// EndClaim implements store.Claims. The token that ended a claim may end it
// again, which changes nothing.
func (s *Store) EndClaim(ctx context.Context, k store.ClaimKey, token int64, result []byte, retention time.Duration) error {
	if err := k.Validate(); err != nil {
		return err
	}
	state := "done"
	if result == nil {
		state, retention = "given", store.Remembered
	} else if err := store.CheckExpiry("retention", retention); err != nil {
		return err
	}
	return s.fenced(ctx, "claim_end", k, strconv.FormatInt(token, 10), state, store.MillisOf(retention), result)
}

// fenced does what only the holder of a token may do.
func (s *Store) fenced(ctx context.Context, script string, k store.ClaimKey, args ...any) error {
	reply, err := s.ask(ctx, script, []string{s.owned(k.Owner).claim(k)}, args...)
	if err != nil {
		return err
	}
	done := reply.yes()
	if err := reply.end(); err != nil {
		return err
	}
	if !done {
		return store.ErrFenced
	}
	return nil
}

// ClaimResult implements store.Claims.
func (s *Store) ClaimResult(ctx context.Context, k store.ClaimKey) (result []byte, done bool, err error) {
	if err := k.Validate(); err != nil {
		return nil, false, err
	}
	return s.bytes(ctx, "claim_result", s.owned(k.Owner).claim(k))
}

// bytes reads what may be there or not.
func (s *Store) bytes(ctx context.Context, script, key string) ([]byte, bool, error) {
	reply, err := s.ask(ctx, script, []string{key})
	if err != nil {
		return nil, false, err
	}
	found, value := reply.yes(), reply.text()
	if err := reply.end(); err != nil || !found {
		return nil, false, err
	}
	return []byte(value), true, nil
}
