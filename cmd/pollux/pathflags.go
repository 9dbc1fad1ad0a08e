// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"pollux/multipath"
)

// pathFlags say how drives are used that have several paths.
type pathFlags struct {
	policy      policyFlag
	timeout     durationFlag
	retryWrites bool
}

// add adds the flags to a command.
func (f *pathFlags) add(cmd *cobra.Command) {
	f.timeout = durationFlag(5 * time.Second)
	flags := cmd.Flags()
	flags.Var(&f.policy, "path-policy", "how paths share the I/O to a drive: queue-depth, round-robin or failover")
	flags.Var(&f.timeout, "no-path-timeout", "how long I/O waits for a path when a drive has none left; 0 does not wait")
	flags.BoolVar(&f.retryWrites, "retry-writes", false, "repeat a write over another path although the first may still be done, AFTER A NEWER ONE")
	var names []cobra.Completion
	for p := multipath.QueueDepth; p <= multipath.Failover; p++ {
		names = append(names, p.String())
	}
	// The error would be that there is no such flag.
	_ = cmd.RegisterFlagCompletionFunc("path-policy", completeWords(names...))
}

func (f *pathFlags) options() multipath.Options {
	opts := multipath.Options{Policy: multipath.Policy(f.policy), NoPathTimeout: time.Duration(f.timeout), RetryWrites: f.retryWrites}
	if opts.NoPathTimeout == 0 {
		opts.NoPathTimeout = -1
	}
	return opts
}

// policyFlag is a policy by its name.
type policyFlag multipath.Policy

func (f *policyFlag) String() string { return multipath.Policy(*f).String() }
func (f *policyFlag) Type() string   { return "policy" }

// Set implements pflag.Value.
func (f *policyFlag) Set(s string) error {
	p, err := multipath.ParsePolicy(s)
	*f = policyFlag(p)
	return err
}
