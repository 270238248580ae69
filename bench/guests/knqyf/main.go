//go:build wasip1

// The guest of knqyf263/go-plugin.
package main

import (
	"context"

	"github.com/hookhost/hookhost/bench/guests/knqyf/textwork"
	"github.com/hookhost/hookhost/bench/work"
)

func main() {}

func init() { textwork.RegisterTextWork(worker{}) }

type worker struct{}

func (worker) Do(_ context.Context, r *textwork.Request) (*textwork.Reply, error) {
	task, _ := work.Find(r.GetTask())
	return &textwork.Reply{Text: task.Do(r.GetText())}, nil
}
