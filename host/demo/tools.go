package demo

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/adk/v2/agent"
	"google.golang.org/adk/v2/tool"
	"google.golang.org/adk/v2/tool/functiontool"
)

// ErrLedgerDown is what the ledger tool fails with: the kind of text that must
// not reach a model.
var ErrLedgerDown = errors.New("dial redis://ledger:s3cret@10.0.0.7:6379: connection refused")

// Order is what most tools take.
type Order struct {
	Order string `json:"order"`
}

// Refund is what the refund tool takes.
type Refund struct {
	Order  string `json:"order"`
	Amount int    `json:"amount,omitempty"`
	Card   string `json:"card,omitempty"`
}

// Status is what the tools return.
type Status struct {
	Order  string `json:"order"`
	Status string `json:"status"`
	Email  string `json:"email,omitempty"`
}

// Desk is a customer desk: the tools of the demo agents and the record of what
// they did. Its zero value is ready; its tools may run at once.
type Desk struct {
	mu        sync.Mutex
	lookups   []Order
	refunds   []Refund
	cancelled []Order
	exports   []Order
}

// Lookups are the orders that were looked up.
func (d *Desk) Lookups() []Order { return snapshot(d, &d.lookups) }

// Refunds are the refunds that were made.
func (d *Desk) Refunds() []Refund { return snapshot(d, &d.refunds) }

// Cancelled are the orders that were cancelled, each after a human's yes.
func (d *Desk) Cancelled() []Order { return snapshot(d, &d.cancelled) }

// Exports are the exports that were started.
func (d *Desk) Exports() []Order { return snapshot(d, &d.exports) }

// Tools are all tools of the desk: lookup and refund; ledger, which fails;
// crash, which panics; export, which is long-running and has no result yet; and
// cancel_order, which asks a human first.
func (d *Desk) Tools() []tool.Tool {
	return []tool.Tool{
		must(functiontool.New(functiontool.Config{Name: "lookup", Description: "Looks an order up."}, d.lookup)),
		must(functiontool.New(functiontool.Config{Name: "refund", Description: "Pays an order back."}, d.refund)),
		must(functiontool.New(functiontool.Config{Name: "ledger", Description: "Reads the ledger of an order."}, d.ledger)),
		must(functiontool.New(functiontool.Config{Name: "crash", Description: "Panics."}, d.crash)),
		must(functiontool.New(functiontool.Config{
			Name: "export", Description: "Exports an order; takes hours.", IsLongRunning: true,
		}, d.export)),
		must(functiontool.New(functiontool.Config{
			Name: "cancel_order", Description: "Cancels an order.", RequireConfirmation: true,
		}, d.cancel)),
	}
}

func (d *Desk) lookup(_ agent.Context, in Order) (Status, error) {
	note(d, &d.lookups, in)
	return Status{Order: in.Order, Status: "shipped", Email: "ada@example.com"}, nil
}

func (d *Desk) refund(_ agent.Context, in Refund) (Status, error) {
	note(d, &d.refunds, in)
	return Status{Order: in.Order, Status: "refunded"}, nil
}

func (d *Desk) ledger(agent.Context, Order) (Status, error) { return Status{}, ErrLedgerDown }

func (d *Desk) crash(_ agent.Context, in Order) (Status, error) {
	panic(fmt.Sprintf("order %s: index out of range", in.Order))
}

// export returns no map: ADK then knows that the result comes later.
func (d *Desk) export(_ agent.Context, in Order) (map[string]any, error) {
	note(d, &d.exports, in)
	return nil, nil
}

func (d *Desk) cancel(_ agent.Context, in Order) (Status, error) {
	note(d, &d.cancelled, in)
	return Status{Order: in.Order, Status: "cancelled"}, nil
}

func note[T any](d *Desk, list *[]T, entry T) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*list = append(*list, entry)
}

func snapshot[T any](d *Desk, list *[]T) []T {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]T(nil), *list...)
}

// must is for what can only fail by a mistake in this file.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
