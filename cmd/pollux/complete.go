// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/spf13/cobra"

	"pollux/internal/assembly"
)

// completionPatience is how long a shell is kept waiting for the names of volumes.
const completionPatience = time.Second

// completeVolume offers the names of volumes as the only argument. Whatever goes
// wrong, it offers none.
func completeVolume(search *searchFlags) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		where, err := search.where()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		where.Patience = completionPatience
		list, err := assembly.Search(cmd.Context(), where)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, s := range list.Sets {
			names = append(names, cobra.CompletionWithDesc(s.Reference.Name, s.Standing.String()+" "+s.UUID.String()))
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// completePaths leaves the argument to the shell, which knows files best.
func completePaths(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// completeWords offers values of a flag.
func completeWords(words ...cobra.Completion) cobra.CompletionFunc {
	return cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
}
