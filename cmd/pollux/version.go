// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"pollux/internal/uring"
)

func newVersion() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of pollux and of what it was built with",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return writeJSON(cmd.OutOrStdout(), versionJSON{schemaVersion, version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, uring.Backend})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "pollux %s\n%s %s/%s\nring: %s\n",
				version(), runtime.Version(), runtime.GOOS, runtime.GOARCH, uring.Backend)
			return err
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// versionJSON is what version prints as JSON.
type versionJSON struct {
	SchemaVersion int    `json:"schema_version"`
	Version       string `json:"version"`
	Go            string `json:"go"`
	OS            string `json:"os"`
	Arch          string `json:"arch"`
	Ring          string `json:"ring_backend"`
}

// version is that of the module, with the commit where the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError(fmt.Sprintf("%s takes no argument, but there is %q", cmd.CommandPath(), args[0]))
	}
	return nil
}
