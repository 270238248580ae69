package memory

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/hookhost/hookhost/store"
)

// activity is what one user did: the histograms by day, without the newest
// minute, which can still grow.
type activity struct {
	plan string
	days map[int64]day // by the day since 1970
	last store.Minute
}

type day struct{ turns, tokens store.Histogram }

const activityLife = store.ActivityKept + 24*time.Hour // the day that began before it

// count adds a record to what its user did.
func (s *Store) count(r store.Record, now int64) {
	owner := store.Owner{Kind: store.OwnerUser, App: r.App, User: r.User}
	a, known := s.activity.get(owner, now)
	if !known {
		a = &activity{days: map[int64]day{}}
	}
	// A record that comes late counts as if it were new, but for its plan.
	minute := r.Time.UTC().Truncate(time.Minute)
	if minute.After(a.last.Start) {
		a.fold(a.last)
		a.last = store.Minute{Start: minute}
		a.forget(dayOf(time.UnixMilli(now).Add(-store.ActivityKept)))
	}
	if !minute.Before(a.last.Start) {
		a.plan = r.Plan
	}
	if r.Turn {
		a.last.Turns++
	}
	a.last.Tokens += r.Tokens.Spent()
	s.activity.put(owner, a, after(now, store.MillisOf(activityLife)))
}

func dayOf(t time.Time) int64 { return t.Unix() / (24 * 60 * 60) }

// fold moves a minute that is over into its day.
func (a *activity) fold(m store.Minute) {
	if m.Turns == 0 && m.Tokens == 0 {
		return
	}
	d, known := a.days[dayOf(m.Start)]
	if !known {
		d = day{store.Histogram{}, store.Histogram{}}
		a.days[dayOf(m.Start)] = d
	}
	d.add(m)
}

func (d day) add(m store.Minute) {
	if m.Turns > 0 {
		d.turns[store.Step(m.Turns)]++
	}
	if m.Tokens > 0 {
		d.tokens[store.Step(m.Tokens)]++
	}
}

func (a *activity) forget(before int64) {
	maps.DeleteFunc(a.days, func(d int64, _ day) bool { return d < before })
}

// Activity implements store.Usage.
func (s *Store) Activity(ctx context.Context, owner store.Owner, since time.Time) ([]store.Activity, error) {
	if err := owner.Validate(); err != nil {
		return nil, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()

	var all []store.Activity
	for _, user := range slices.Collect(maps.Keys(s.activity.entries)) {
		a, known := s.activity.get(user, now)
		if known && (store.Record{App: user.App, User: user.User}).Of(owner) && !a.last.Start.Before(since.Truncate(time.Minute)) {
			all = append(all, a.of(user, since))
		}
	}
	slices.SortFunc(all, store.Activity.Compare)
	return all, nil
}

func (a *activity) of(user store.Owner, since time.Time) store.Activity {
	sum := day{store.Histogram{}, store.Histogram{}}
	for number, d := range a.days {
		if number >= dayOf(since) {
			sum.turns.Merge(d.turns)
			sum.tokens.Merge(d.tokens)
		}
	}
	sum.add(a.last)
	return store.Activity{App: user.App, User: user.User, Plan: a.plan, Turns: sum.turns, Tokens: sum.tokens, Last: a.last}
}
