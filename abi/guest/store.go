package guest

import (
	"time"

	"github.com/hookhost/hookhost/abi"
)

// KVGet reads a value of the user.
func (c *Call) KVGet(name, key string) (string, error) {
	return readString(func(buf []byte) int32 { return c.border.KVGet(name, key, buf) })
}

// KVPut keeps a value of the user until it expires.
func (c *Call) KVPut(name, key, value string, ttl time.Duration) error {
	return check(c.border.KVPut(name, key, value, milliseconds(ttl)))
}

// Claim is the right of one of many to do something once.
type Claim struct {
	State uint32 // abi.Claimed, abi.ClaimElsewhere or abi.ClaimDone
	Token int64  // with abi.Claimed, for RenewClaim and EndClaim
}

// Claim takes a key for a while, or says that another holds it or that it is
// done.
func (c *Call) Claim(name, key string, ttl time.Duration) (Claim, error) {
	var record [abi.ClaimSize]byte
	if n := c.border.Claim(name, key, milliseconds(ttl), record[:]); n < 0 {
		return Claim{}, Error(n)
	}
	return Claim{
		State: uint32At(record[:], abi.ClaimState),
		Token: int64At(record[:], abi.ClaimToken),
	}, nil
}

// RenewClaim prolongs a claim. It is not found when it was lost.
func (c *Call) RenewClaim(name, key string, token int64, ttl time.Duration) error {
	return check(c.border.ClaimRenew(name, key, token, milliseconds(ttl)))
}

// EndClaim completes a claim with its result, which is kept for that long.
func (c *Call) EndClaim(name, key string, token int64, result string, retention time.Duration) error {
	return check(c.border.ClaimEnd(name, key, token, result, milliseconds(retention)))
}

// DropClaim gives a claim back undone.
func (c *Call) DropClaim(name, key string, token int64) error {
	return check(c.border.ClaimEnd(name, key, token, "", 0))
}

// ClaimResult reads what a completed claim came to.
func (c *Call) ClaimResult(name, key string) (string, error) {
	return readString(func(buf []byte) int32 { return c.border.ClaimResult(name, key, buf) })
}

// HMAC returns the 32 bytes of HMAC-SHA-256 over data, keyed with a secret
// that the guest never sees.
func (c *Call) HMAC(secret, data string) ([32]byte, error) {
	var sum [32]byte
	err := check(c.border.HMACSHA256(secret, data, sum[:]))
	return sum, err
}
