package hostfn

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/store"
)

var claimStates = map[store.ClaimState]uint32{
	store.Claimed: abi.Claimed, store.HeldElsewhere: abi.ClaimElsewhere, store.Completed: abi.ClaimDone,
}

func (c *Call) claim(function, name, key string) (store.ClaimKey, abi.Code) {
	code := firstOf(c.granted(function, abi.Grant{Family: "claim", Name: name}), checkKey(key))
	if code != abi.OK {
		return store.ClaimKey{}, code
	}
	return store.ClaimKey{Owner: c.user(), Name: name, Key: key}, abi.OK
}

// Claim takes a key for the run, or tells whose it is.
func (c *Call) Claim(name, key string, ttlMS int64, out []byte) int32 {
	k, code := c.claim("hookhost_claim.claim", name, key)
	if code != abi.OK {
		return code
	}
	ttl, code := milliseconds(ttlMS, 1)
	if code != abi.OK || len(out) < abi.ClaimSize {
		return abi.BadArgument
	}
	var claim store.Claim
	code = c.inStore(func(ctx context.Context) (err error) {
		claim, err = c.services.Store.Claim(ctx, k, c.ev.Run.ID(), ttl)
		return err
	})
	if code != abi.OK {
		return code
	}
	record := make([]byte, abi.ClaimSize)
	binary.LittleEndian.PutUint32(record[abi.ClaimState:], claimStates[claim.State])
	binary.LittleEndian.PutUint64(record[abi.ClaimToken:], uint64(claim.Token))
	return fill(out, record)
}

// ClaimRenew prolongs a claim. One that was lost is not found.
func (c *Call) ClaimRenew(name, key string, token, ttlMS int64) int32 {
	k, code := c.claim("hookhost_claim.renew", name, key)
	if code != abi.OK {
		return code
	}
	ttl, code := milliseconds(ttlMS, 1)
	if code != abi.OK {
		return code
	}
	return c.inStore(func(ctx context.Context) error {
		return c.services.Store.RenewClaim(ctx, k, token, ttl)
	})
}

// ClaimEnd completes a claim with its result, which is kept for the
// retention; a retention of 0 gives the claim back. One that was lost is not
// found.
func (c *Call) ClaimEnd(name, key string, token int64, result string, retentionMS int64) int32 {
	k, code := c.claim("hookhost_claim.end", name, key)
	if code != abi.OK {
		return code
	}
	retention, code := milliseconds(retentionMS, 0)
	switch {
	case code != abi.OK:
		return code
	case len(result) > abi.MaxValue:
		return abi.OverLimit
	}
	return c.inStore(func(ctx context.Context) error {
		return c.services.Store.EndClaim(ctx, k, token, completed(result, retention), retention)
	})
}

// completed is nil, which gives a claim back, only without a retention.
func completed(result string, retention time.Duration) []byte {
	if retention == 0 {
		return nil
	}
	return append([]byte{}, result...)
}

// ClaimResult reads what a completed claim came to.
func (c *Call) ClaimResult(name, key string, buf []byte) int32 {
	k, code := c.claim("hookhost_claim.result", name, key)
	if code != abi.OK {
		return code
	}
	var result []byte
	var done bool
	code = c.inStore(func(ctx context.Context) (err error) {
		result, done, err = c.services.Store.ClaimResult(ctx, k)
		return err
	})
	switch {
	case code != abi.OK:
		return code
	case !done:
		return abi.NotFound
	}
	return fill(buf, result)
}
