package main

import "context"

func testScenarios(ctx context.Context, c *command) error { return errUsage }
