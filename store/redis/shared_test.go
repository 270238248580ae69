package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/store"
	"github.com/hookhost/hookhost/store/redis/redistest"
)

func TestEstimateThatOneProcessLearnedIsKnownToAnother(t *testing.T) {
	server := redistest.Single(t)
	first, second := opened(t, server.URL()), opened(t, server.URL())
	sample := store.Sample{App: "shop", Agent: "desk", Model: "m", Calls: 2, Units: 500}
	for want, s := range map[string]*Store{"first": first, "second": second} {
		_, err := s.Learn(ctx, want, []store.Sample{sample})
		require.NoError(t, err)
		sample.Units += 500
	}
	for _, s := range []*Store{first, second} {
		means, err := s.Learn(ctx, newID(), []store.Sample{{App: "shop", Agent: "desk", Model: "m"}, {App: "bank", Agent: "desk", Model: "m"}})
		require.NoError(t, err)
		assert.Equal(t, []int64{375, 0}, means)
	}
}

// A fleet-wide cap stands beside the users' limits: each is asked for itself,
// and what a wider one refuses is given back by its id.
func TestScopeAdmissionsOfUserAppAndFleetStandApart(t *testing.T) {
	server := redistest.Single(t)
	processes := []*Store{opened(t, server.URL()), opened(t, server.URL())}
	fleet := store.Owner{Kind: store.OwnerGlobal}
	shop := store.Owner{Kind: store.OwnerApp, App: "shop"}
	ask := func(s *Store, id string, o store.Owner, burst int64) store.Kind {
		t.Helper()
		d, err := s.Admit(ctx, store.Admission{ID: id, Owner: o, Items: []store.Item{
			{Limit: "calls", Take: &store.Take{Bucket: store.Bucket{Units: 1, Per: 24 * time.Hour, Burst: burst}, Cost: 1, Reserve: time.Minute}},
		}})
		require.NoError(t, err)
		return d.Kind
	}
	left := func(o store.Owner, burst int64) int64 {
		t.Helper()
		n, err := processes[0].Balance(ctx, o, "calls", store.Bucket{Units: 1, Per: 24 * time.Hour, Burst: burst})
		require.NoError(t, err)
		return n
	}
	var admitted int
	for i := range 6 {
		s, user := processes[i%2], store.Owner{Kind: store.OwnerUser, App: "shop", User: []string{"ann", "bob", "cleo"}[i%3]}
		id := newID()
		require.Equal(t, store.Now, ask(s, id, user, 10))
		require.Equal(t, store.Now, ask(s, id, shop, 10))
		if ask(s, id, fleet, 4) == store.Now {
			admitted++
			continue
		}
		for _, o := range []store.Owner{user, shop} {
			_, err := s.Settle(ctx, store.Reservation{ID: id, Owner: o, Limit: "calls", Bucket: store.Bucket{Units: 1, Per: 24 * time.Hour, Burst: 10}}, 0)
			require.NoError(t, err)
		}
	}
	assert.Equal(t, 4, admitted)
	assert.EqualValues(t, 0, left(fleet, 4))
	assert.EqualValues(t, 6, left(shop, 10))
	assert.EqualValues(t, 8, left(ann, 10))
}
