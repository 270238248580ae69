package main

import (
	"fmt"
	"net/rpc"
	"os"

	"github.com/hashicorp/go-hclog"
	hashicorp "github.com/hashicorp/go-plugin"
	"github.com/stretchr/testify/require"

	"github.com/hookhost/hookhost/bench/work"
)

var handshake = hashicorp.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "HOOKHOST_BENCH", MagicCookieValue: "text work"}

// textWork is the plugin of hashicorp/go-plugin, on both sides.
type textWork struct{}

const textWorkName = "textwork"

func (textWork) Server(*hashicorp.MuxBroker) (any, error)                  { return workServer{}, nil }
func (textWork) Client(_ *hashicorp.MuxBroker, c *rpc.Client) (any, error) { return c, nil }

type workServer struct{}

// WorkArgs is what is sent.
type WorkArgs struct{ Task, Text string }

// Do is called over net/rpc.
func (workServer) Do(args WorkArgs, reply *string) error {
	task, found := work.Find(args.Task)
	if !found {
		return fmt.Errorf("no task %q", args.Task)
	}
	*reply = task.Do(args.Text)
	return nil
}

// serveHashicorp is this program as a plugin.
func serveHashicorp() {
	hashicorp.Serve(&hashicorp.ServeConfig{HandshakeConfig: handshake, Plugins: hashicorp.PluginSet{textWorkName: textWork{}}})
}

// newHashicorp is the native function in another process behind
// hashicorp/go-plugin, over net/rpc on a unix socket.
func newHashicorp(l *lab, _ settings, task string) doer {
	client := hashicorp.NewClient(&hashicorp.ClientConfig{
		HandshakeConfig: handshake, Plugins: hashicorp.PluginSet{textWorkName: textWork{}},
		Cmd: childCommand(l, childHashicorp), Managed: true,
		Logger: hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr}),
	})
	l.Cleanup(client.Kill)
	connection, err := client.Client()
	require.NoError(l, err)
	require.Equal(l, "unix", client.ReattachConfig().Addr.Network())
	dispensed, err := connection.Dispense(textWorkName)
	require.NoError(l, err)
	remote := dispensed.(*rpc.Client)
	return func(text string) (out string, err error) {
		err = remote.Call("Plugin.Do", WorkArgs{task, text}, &out)
		return out, err
	}
}
