package redis

import (
	"context"

	"github.com/hookhost/hookhost/store"
)

// Learn implements store.Averages: with one call for each app, in a pipeline.
func (s *Store) Learn(ctx context.Context, id string, samples []store.Sample) ([]int64, error) {
	if err := store.CheckSamples(id, samples); err != nil {
		return nil, err
	}
	type app struct {
		*call
		samples []int
	}
	apps := map[string]*app{}
	var calls []*call
	for i, sample := range samples {
		keys := s.owned(store.Owner{Kind: store.OwnerApp, App: sample.App})
		its := apps[sample.App]
		if its == nil {
			its = &app{call: s.call("learn", []string{keys.learned(id)}, remembered, store.AverageLife.Milliseconds())}
			apps[sample.App], calls = its, append(calls, its.call)
		}
		its.keys = append(its.keys, keys.average(sample.Agent, sample.Model))
		its.args = append(its.args, sample.Calls, sample.Units)
		its.samples = append(its.samples, i)
	}
	if err := s.do(ctx, calls...); err != nil {
		return nil, err
	}
	means := make([]int64, len(samples))
	for _, its := range apps {
		reply, err := its.result()
		if err != nil {
			return nil, err
		}
		for _, i := range its.samples {
			means[i] = reply.between(0, store.MaxUnits)
		}
		if err := reply.end(); err != nil {
			return nil, err
		}
	}
	return means, nil
}
