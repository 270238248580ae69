package hostfn

import (
	"crypto/hmac"
	"crypto/sha256"

	"github.com/hookhost/hookhost/abi"
)

// hashPiece is how much is hashed between two looks at the call's time.
const hashPiece = 1 << 20

// HMACSHA256 writes the 32 bytes of a keyed hash. The secret is named, never
// read.
func (c *Call) HMACSHA256(name, data string, out []byte) int32 {
	if code := c.granted("hookhost_secret.hmac_sha256", abi.Grant{Family: "secret", Name: name}); code != abi.OK {
		return code
	}
	key, found := c.stage.Secrets[name]
	switch {
	case !found:
		return abi.NotFound
	case len(out) < sha256.Size:
		return abi.BadArgument
	case len(data) > abi.MaxValue:
		return abi.OverLimit
	}
	mac := hmac.New(sha256.New, key)
	for len(data) > 0 {
		if c.ctx.Err() != nil {
			return abi.Unavailable // which a guest that is out of time does not see
		}
		n := min(len(data), hashPiece)
		mac.Write([]byte(data[:n]))
		data = data[n:]
	}
	return fill(out, mac.Sum(nil))
}
