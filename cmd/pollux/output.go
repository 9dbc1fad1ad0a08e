// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/dustin/go-humanize"

	"pollux/internal/bench"
)

// schemaVersion numbers the keys that are printed as JSON, of all commands
// together. It goes up when one changes its meaning or goes away, not when one is
// added. docs/cli.md lists them.
const schemaVersion = bench.Schema

// writeJSON prints v, an object whose first key is schema_version.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table aligns cells that tabs separate; those at the end of a line need none.
func table(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// bytesText is how a size is written for people.
func bytesText(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// printable quotes a path that would spoil a line of text.
func printable(path string) string {
	if path == "" || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(path)
	}
	return path
}

// warn prints one line on the standard error.
func warn(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, "pollux: warning: "+oneLine(fmt.Sprintf(format, args...)))
}

// texts returns the lines of errors.
func texts(errs []error) []string {
	out := make([]string, 0, len(errs))
	for _, err := range errs {
		out = append(out, oneLine(err.Error()))
	}
	return out
}

// some joins texts, of many only the first.
func some(texts []string) string {
	const most = 3
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
