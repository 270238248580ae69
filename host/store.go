package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookhost/hookhost/chain/manifest"
	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/memory"
)

// ErrStore is a store that this build has no engine for.
var ErrStore = errors.New("no engine for this store")

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

// openRedis is to be replaced.
func openRedis(_ context.Context, m *manifest.Manifest, _ Options) (store.Store, error) {
	scheme, _, _ := strings.Cut(m.Store.URL, "://") // the rest may hold a password
	return nil, fmt.Errorf("store[%s]: %w: use memory://", scheme, ErrStore)
}
