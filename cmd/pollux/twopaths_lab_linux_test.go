// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"pollux/internal/blockdev"
	"pollux/internal/labtest"
)

// TestLabTwoPathsScripts runs the command line over drives with two paths each,
// TestLabHeadScripts over such that the kernel joins.
func TestLabTwoPathsScripts(t *testing.T) { runLabScript(t, "twopaths.txtar", 4) }
func TestLabHeadScripts(t *testing.T)     { runLabScript(t, "head.txtar", 2) }

// runLabScript runs a script that finds n drives in P0, P1 and so on.
func runLabScript(t *testing.T, script string, n int) {
	paths := labtest.Devices(t, blockdev.DriverNVMe, n)
	testscript.Run(t, testscript.Params{
		Files:               []string{filepath.Join(labScripts, script)},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			for i, path := range paths[:n] {
				env.Setenv(fmt.Sprintf("P%d", i), path)
			}
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"oneline": oneLineCommand,
		},
	})
}
