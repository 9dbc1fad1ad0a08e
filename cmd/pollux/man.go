// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manSection is that of commands for administrators, where mdadm is too.
const manSection = "8"

func newMan() *cobra.Command {
	dir, asJSON := "", false
	cmd := &cobra.Command{
		Use:   "man",
		Short: "Print the man pages, or write them to a directory",
		Long: `man prints the man pages of all commands, in the section of administration (8), one
after the other. With --dir it writes each to a file there, and prints the names.
The same pollux always makes the same pages.`,
		Example: `  pollux man | man -l -
  pollux man --dir /usr/local/share/man/man8`,
		DisableFlagsInUseLine: true,
		Args:                  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return man(cmd, dir, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write the pages to this directory, which is made if there is none")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: the pages, or with --dir where they are")
	_ = cmd.MarkFlagDirname("dir") // the error would be that there is no such flag
	return cmd
}

// pageJSON is a man page. Of text and path there is one.
type pageJSON struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Text string `json:"text"`
}

type pagesJSON struct {
	SchemaVersion int        `json:"schema_version"`
	Section       string     `json:"section"`
	Pages         []pageJSON `json:"pages"`
}

func man(cmd *cobra.Command, dir string, asJSON bool) error {
	if cmd.Flags().Changed("dir") && dir == "" {
		return usageError("--dir: the path is empty")
	}
	pages, err := manPages(newRoot())
	if err != nil {
		return err
	}
	out := pagesJSON{SchemaVersion: schemaVersion, Section: manSection}
	var said bytes.Buffer
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("%w; give a directory that can be written to", err)
		}
	}
	for _, p := range pages {
		if dir == "" {
			said.WriteString(p.Text)
			out.Pages = append(out.Pages, p)
			continue
		}
		path := filepath.Join(dir, p.Name)
		if err := os.WriteFile(path, []byte(p.Text), 0o644); err != nil {
			return fmt.Errorf("%w; give a directory that can be written to", err)
		}
		fmt.Fprintln(&said, path)
		out.Pages = append(out.Pages, pageJSON{Name: p.Name, Path: path})
	}
	if asJSON {
		return writeJSON(cmd.OutOrStdout(), out)
	}
	_, err = cmd.OutOrStdout().Write(said.Bytes())
	return err
}

// manPages returns the pages of a command and of all below it. It changes their
// texts.
func manPages(cmd *cobra.Command) ([]pageJSON, error) {
	cmd.DisableAutoGenTag = true
	if cmd.Long == "" {
		cmd.Long = cmd.Short
	}
	cmd.Long = markdown(cmd.Long)
	var never time.Time // a date of today would make every build another one
	header := &doc.GenManHeader{Section: manSection, Source: "pollux", Manual: "pollux", Date: &never}
	var b bytes.Buffer
	if err := doc.GenMan(cmd, header, &b); err != nil {
		return nil, err
	}
	text := strings.Replace(b.String(), `"`+never.Format("Jan 2006")+`"`, `""`, 1)
	pages := []pageJSON{{Name: strings.ReplaceAll(cmd.CommandPath(), " ", "-") + "." + manSection, Text: text}}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		below, err := manPages(sub)
		if err != nil {
			return nil, err
		}
		pages = append(pages, below...)
	}
	return pages, nil
}

// markdown makes of a help text, which is read on a terminal, one that is read
// through a formatter: an indented line stays a line.
func markdown(text string) string {
	var b strings.Builder
	inBlock := false
	for line := range strings.Lines(text) {
		indented := strings.HasPrefix(line, "  ")
		if indented && !inBlock {
			b.WriteByte('\n')
		}
		if indented {
			b.WriteString("  ") // four are a block
		}
		inBlock = indented
		b.WriteString(line)
	}
	return b.String()
}
