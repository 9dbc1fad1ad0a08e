// SPDX-License-Identifier: Apache-2.0

//go:build linux

package volume_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pollux/internal/blockdev"
	"pollux/poller"
)

// The example reads chunks of both members in turns.
func TestExample(t *testing.T) {
	const chunk, chunks = 64 << 10, 16
	var paths []string
	for i := range 2 {
		path := filepath.Join(t.TempDir(), "disk")
		if err := os.WriteFile(path, bytes.Repeat([]byte{byte('a' + i)}, chunk*chunks/2), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	data, err := readStart(paths...)
	if errors.Is(err, blockdev.ErrNoDirectIO) || errors.Is(err, poller.ErrNotAllowed) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if len(data) != chunk*chunks {
		t.Fatalf("%d bytes, want %d", len(data), chunk*chunks)
	}
	for i := range chunks {
		if want := bytes.Repeat([]byte{byte('a' + i%2)}, chunk); !bytes.Equal(data[i*chunk:][:chunk], want) {
			t.Errorf("chunk %d is not member %d's", i, i%2)
		}
	}
	if _, err := readStart(paths[0], paths[0]+".missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing drive: %v", err)
	}
}

// The Go code that the README shows is code of the example, so that it compiles
// and works.
func TestReadmeShowsTheExample(t *testing.T) {
	example, blocks := read(t, "../docs/examples/keep/main.go"), strings.Split(read(t, "../README.md"), "```go\n")[1:]
	if len(blocks) != 1 {
		t.Fatalf("%d blocks of Go in README.md, want 1", len(blocks))
	}
	code, _, closed := strings.Cut(blocks[0], "```")
	if !closed || !strings.Contains(example, "\n"+code) {
		t.Error("the Go code in README.md is not that of volume/example_test.go: copy it from there")
	}
}

var (
	testName = regexp.MustCompile(`\b(?:Test|Benchmark|Fuzz)[A-Z]\w+`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz)\w+)\(`)
	link     = regexp.MustCompile(`\]\(([^)#:]+)\)`)
)

// Tests that the documents name, by the whole name or its beginning, and files
// that they link to, are there.
func TestDocumentsAreTrue(t *testing.T) {
	var tests []string
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range testFunc.FindAllStringSubmatch(read(t, path), -1) {
			tests = append(tests, m[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	documents, err := filepath.Glob("../*.md")
	if err != nil || len(documents) < 4 {
		t.Fatalf("%d documents: %v", len(documents), err)
	}
	for _, document := range documents {
		text := read(t, document)
		for _, name := range testName.FindAllString(text, -1) {
			if !slices.ContainsFunc(tests, func(test string) bool { return strings.HasPrefix(test, name) }) {
				t.Errorf("%s names %s, and there is no such test", document, name)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join("..", m[1])); err != nil {
				t.Errorf("%s: %v", document, err)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
