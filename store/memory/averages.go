package memory

import (
	"context"
	"slices"

	"github.com/hookhost/hookhost/store"
)

type averageKey struct{ app, agent, model string }

// Learn implements store.Averages.
func (s *Store) Learn(ctx context.Context, id string, samples []store.Sample) ([]int64, error) {
	if err := store.CheckSamples(id, samples); err != nil {
		return nil, err
	}
	now, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()

	if means, repeated := s.learned.get(id, now); repeated {
		return slices.Clone(means), nil
	}
	means := make([]int64, len(samples))
	for i, sample := range samples {
		key := averageKey{sample.App, sample.Agent, sample.Model}
		average, _ := s.averages.get(key, now)
		if sample.Calls > 0 {
			average = average.Add(sample.Calls, sample.Units)
			s.averages.put(key, average, after(now, store.MillisOf(store.AverageLife)))
		}
		means[i] = average.Mean()
	}
	s.learned.put(id, slices.Clone(means), after(now, store.MillisOf(store.Remembered)))
	return means, nil
}
