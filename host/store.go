package host

import (
	"context"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
	"github.com/hookhost/hookhost/store/redis"
)

// openStore opens the store that the manifest names. Shared says that other
// processes can be on it and that it can be away.
func openStore(ctx context.Context, m *manifest.Manifest, o Options) (s store.Store, shared bool, err error) {
	switch {
	case o.Store != nil:
		return o.Store, false, nil
	case !m.Store.Shared():
		return memory.New(o.clock()), false, nil
	}
	s, err = openRedis(ctx, m, o)
	return s, true, err
}

// openRedis connects to the server of the manifest. What is wrong with it is
// said at [store] url.
func openRedis(ctx context.Context, m *manifest.Manifest, o Options) (store.Store, error) {
	username, password, err := m.ReadCredentials()
	if err != nil {
		return nil, err
	}
	s, err := redis.Open(ctx, redis.Config{
		URL: m.Store.URL, Namespace: m.Store.Namespace, Timeout: m.Store.Timeout, DialTimeout: m.Store.DialTimeout, Pool: m.Store.Pool,
		Username: username, Password: password, CA: m.Store.CA, Cert: m.Store.Cert, Key: m.Store.Key, Log: o.log(),
	})
	if err != nil {
		return nil, m.StoreErrorf("url", "%w", err)
	}
	return s, nil
}
