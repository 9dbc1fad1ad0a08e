// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pollux/internal/assembly"
	"pollux/internal/blockdev"
	"pollux/poller"
)

// TestKeep keeps a file on a volume of two files.
func TestKeep(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, 16<<20); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	t.Setenv("POLLUX_DEVICES", strings.Join(paths, ":"))
	c, err := assembly.PrepareCreate(context.Background(), assembly.CreateOptions{
		Name: "kept", Devices: paths, AllowUnpolled: true, Where: assembly.Where{Devices: paths},
	})
	if errors.Is(err, blockdev.ErrNoDirectIO) || errors.Is(err, poller.ErrNotAllowed) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Commit(), c.Close()); err != nil {
		t.Fatal(err)
	}

	if _, err := get("other", io.Discard); err == nil || !strings.Contains(err.Error(), "no such volume") {
		t.Errorf("another volume: %v", err)
	}
	file := make([]byte, 9<<20+77)
	rand.NewChaCha8([32]byte{7}).Read(file)
	if n, err := put("kept", bytes.NewReader(file)); n != int64(len(file)) || err != nil {
		t.Fatal(n, err)
	}
	var back bytes.Buffer
	if n, err := get("kept", &back); n != int64(len(file)) || err != nil || !bytes.Equal(back.Bytes(), file) {
		t.Errorf("%d bytes, %v, and they are not what was put there", n, err)
	}
	if _, err := put("kept", io.LimitReader(endless{}, 64<<20)); err == nil {
		t.Error("more than the volume holds was put there")
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }
