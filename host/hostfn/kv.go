package hostfn

import (
	"context"

	"github.com/hookhost/hookhost/abi"
	"github.com/hookhost/hookhost/store"
)

func (c *Call) value(function, name, key string) (store.ValueKey, abi.Code) {
	code := firstOf(c.granted(function, abi.Grant{Family: "kv", Name: name}), checkKey(key))
	if code != abi.OK {
		return store.ValueKey{}, code
	}
	return store.ValueKey{Owner: c.user(), Name: name, Key: key}, abi.OK
}

// KVGet reads a value of the user.
func (c *Call) KVGet(name, key string, buf []byte) int32 {
	k, code := c.value("hookhost_kv.get", name, key)
	if code != abi.OK {
		return code
	}
	var value []byte
	var found bool
	code = c.inStore(func(ctx context.Context) (err error) {
		value, found, err = c.services.Store.GetValue(ctx, k)
		return err
	})
	switch {
	case code != abi.OK:
		return code
	case !found:
		return abi.NotFound
	}
	return fill(buf, value)
}

// KVPut keeps a value of the user for a time.
func (c *Call) KVPut(name, key, value string, ttlMS int64) int32 {
	k, code := c.value("hookhost_kv.put", name, key)
	if code != abi.OK {
		return code
	}
	ttl, code := milliseconds(ttlMS, 1)
	switch {
	case code != abi.OK:
		return code
	case len(value) > abi.MaxValue:
		return abi.OverLimit
	}
	return c.inStore(func(ctx context.Context) error {
		return c.services.Store.PutValue(ctx, k, []byte(value), ttl)
	})
}
