package host

import (
	"context"

	"github.com/hookhost/hookhost/host/hostfn"
)

type seam struct{ *plans }

func (s seam) Plan(app, user string) string { return s.plans.Plan(context.Background(), app, user) }

func (s seam) Limit(app, user, name, scope string) (hostfn.Limit, bool) {
	return s.plans.Limit(context.Background(), app, user, name, scope)
}
