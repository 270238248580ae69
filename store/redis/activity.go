package redis

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookhost/hookhost/store"
)

const (
	activityLife = store.ActivityKept + 24*time.Hour // the day that began before it
	activeLife   = RecordLife                        // of a user in the index
	shards       = 16                                // of the index
	clockSlack   = 24 * time.Hour                    // by which the clocks of hosts and server may differ, at most
)

// The index of users with a record is in shards, so that it is spread over a
// Cluster and no server is searched for keys.

func (s *Store) shard(n uint32) string {
	return s.namespace + ":{active:" + strconv.FormatUint(uint64(n), 10) + "}"
}

func shardOf(app, user string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(joinFields(app, user)))
	return h.Sum32() % shards
}

// users finds those of an owner with a record since then.
func (m *many) users(ctx context.Context, owner store.Owner, since time.Time) ([]store.Owner, error) {
	if owner.Kind == store.OwnerUser {
		return []store.Owner{{Kind: store.OwnerUser, App: owner.App, User: owner.User}}, nil
	}
	from := max(since.UnixMilli(), 0)
	calls := make([]*call, shards)
	for n := range calls {
		calls[n] = m.store.call("active_read", []string{m.store.shard(uint32(n))}, from)
	}
	var users []store.Owner
	err := m.read(ctx, fmt.Sprintf("of %d parts of the index of users", shards), calls, func(_ int, r *reply) {
		var found []store.Owner
		for r.more() {
			if u := r.user(); (store.Record{App: u.App, User: u.User}).Of(owner) {
				found = append(found, u)
			}
		}
		if r.err == nil {
			users = append(users, found...)
		}
	})
	return users, err
}

func (r *reply) user() store.Owner {
	f := r.fields(2)
	return store.Owner{Kind: store.OwnerUser, App: f[0], User: f[1]}
}

// fields reads a known number of strings in one; they are empty where they
// cannot be read.
func (r *reply) fields(n int) []string {
	text := r.text()
	if r.err == nil {
		fields, err := splitFields(text, n)
		if err == nil {
			return fields
		}
		r.fail("%v", err)
	}
	return make([]string, n)
}

// Activity implements store.Usage.
func (s *Store) Activity(ctx context.Context, owner store.Owner, since time.Time) ([]store.Activity, error) {
	if err := owner.Validate(); err != nil {
		return nil, err
	}
	m := many{store: s}
	users, err := m.users(ctx, owner, since.Add(-clockSlack))
	if err != nil {
		return nil, err
	}
	var all []store.Activity
	read := 0
	for batch := range slices.Chunk(users, maxPipeline) {
		store.Progress(ctx, read, len(users))
		calls := make([]*call, len(batch))
		for i, u := range batch {
			calls[i] = s.call("activity_read", []string{s.owned(u).activity()})
		}
		err := m.read(ctx, "users' activity", calls, func(i int, r *reply) {
			if !r.more() {
				return
			}
			a := r.activity(batch[i], since)
			if r.err == nil && !a.Last.Start.Before(since.Truncate(time.Minute)) {
				all = append(all, a)
			}
		})
		if err != nil {
			return nil, err
		}
		read += len(batch)
	}
	slices.SortFunc(all, store.Activity.Compare)
	return all, m.end(owner)
}

// activity reads what a user did since then: the names and values of a hash.
func (r *reply) activity(user store.Owner, since time.Time) store.Activity {
	a := store.Activity{App: user.App, User: user.User, Turns: store.Histogram{}, Tokens: store.Histogram{}}
	for r.more() {
		switch name := r.text(); name {
		case "plan":
			a.Plan = r.text()
		case "minute":
			a.Last.Start = time.Unix(r.number()*60, 0).UTC()
		case "turns":
			a.Last.Turns = r.number()
		case "tokens":
			a.Last.Tokens = r.number()
		case "day", "cleared", "until":
			r.number()
		default:
			histogram, day, step, err := parseMinutes(name)
			if err != nil {
				r.fail("%v", err)
				break
			}
			if minutes := r.number(); day >= dayOf(since) {
				map[string]store.Histogram{"t": a.Turns, "k": a.Tokens}[histogram][step] += minutes
			}
		}
	}
	for histogram, n := range map[*store.Histogram]int64{&a.Turns: a.Last.Turns, &a.Tokens: a.Last.Tokens} {
		if n > 0 {
			(*histogram)[store.Step(n)]++
		}
	}
	return a
}

// parseMinutes reads a field that counts minutes: t:DAY:STEP or k:DAY:STEP.
func parseMinutes(field string) (histogram string, day, step int64, err error) {
	parts := strings.Split(field, ":")
	if len(parts) != 3 || parts[0] != "t" && parts[0] != "k" {
		return "", 0, 0, fmt.Errorf("field of no known name")
	}
	if day, err = strconv.ParseInt(parts[1], 10, 64); err == nil {
		step, err = strconv.ParseInt(parts[2], 10, 64)
	}
	if err != nil || step < 1 || step > math.MaxInt64/2 {
		return "", 0, 0, fmt.Errorf("minutes of no day or step")
	}
	return parts[0], day, step, nil
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }
