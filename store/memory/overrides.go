package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/hookhost/hookhost/store"
)

// overrides are those that stand and, to tell who asks what has changed, those
// that were taken back.
type overrides struct {
	revision int64
	users    map[overrideKey]revised
}

type overrideKey struct{ app, user string }

type revised struct {
	store.Override
	revision int64
}

func newOverrides() overrides { return overrides{users: map[overrideKey]revised{}} }

// SetOverride implements store.Overrides.
func (s *Store) SetOverride(ctx context.Context, o store.Override) error {
	if err := o.Validate(); err != nil {
		return err
	}
	if _, err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()

	if o.Plan == "" {
		o = store.Override{App: o.App, User: o.User}
	}
	s.overrides.revision++
	s.overrides.users[overrideKey{o.App, o.User}] = revised{o, s.overrides.revision}
	return nil
}

// Overrides implements store.Overrides.
func (s *Store) Overrides(ctx context.Context, since string) (store.OverrideChanges, error) {
	if _, err := s.lock(ctx); err != nil {
		return store.OverrideChanges{}, err
	}
	defer s.mu.Unlock()

	known, err := strconv.ParseInt(since, 10, 64)
	whole := err != nil || known > s.overrides.revision
	if whole {
		known = 0
	}
	newer := slices.SortedFunc(maps.Values(s.overrides.users), func(a, b revised) int { return cmp.Compare(a.revision, b.revision) })
	changes := store.OverrideChanges{Revision: strconv.FormatInt(s.overrides.revision, 10), Whole: whole}
	for _, o := range newer {
		if o.revision > known && !(whole && o.Plan == "") {
			changes.Changed = append(changes.Changed, o.Override)
		}
	}
	return changes, nil
}
