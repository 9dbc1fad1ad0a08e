// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pollux/internal/blockdev"
	"pollux/internal/labtest"
)

// TestLabTwoPathsScripts runs the command line over drives with two paths each.
func TestLabTwoPathsScripts(t *testing.T) {
	paths := labtest.Devices(t, blockdev.DriverNVMe, 4)
	testscript.Run(t, testscript.Params{
		Dir:                 labScripts,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for i, path := range paths[:4] {
				env.Setenv(fmt.Sprintf("P%d", i), path)
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"oneline": oneLineCommand,
		},
	})
}
