// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// openTerminal returns both ends of a pseudoterminal: what a person sees and types,
// and what a program has.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatalf("no terminal to be had, is devpts mounted on /dev/pts: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	raw, err := person.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if failed == nil {
			number, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	}); err != nil || failed != nil {
		t.Fatal(errors.Join(err, failed))
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = program.Close() })
	return person, program
}

// TestDestroyAsks answers the question of destroy on a terminal.
func TestDestroyAsks(t *testing.T) {
	const question = "type the volume's name to destroy it: "
	for _, tt := range []struct {
		name, answer string
		code         int
		says         string
	}{
		{"name", "v\n", exitGood, "destroyed volume v"},
		{"wrong", "w\n", exitRefused, `the answer was "w" and not its name`},
		{"nothing", "\n", exitRefused, `the answer was ""`},
		{"end", "\x04", exitFailed, "there was no answer"},
		{"signal", "\x03", exitFailed, "there was no answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newCutRig(t, nil)
			r.must(exitGood, r.create()...)
			before := r.contents()
			person, program := openTerminal(t)
			bin, err := exec.LookPath("pollux")
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), bin, append([]string{"destroy", "v"}, r.where()...)...)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := readUntil(t, person, question)
			if !strings.Contains(said, "will be destroyed: "+filepath.Join(filepath.Dir(r.files[0]), "c")) {
				t.Errorf("it asked before it told what is lost: %q", said)
			}
			if _, err := person.WriteString(tt.answer); err != nil {
				t.Fatal(err)
			}
			said = readUntil(t, person, tt.says)
			err = cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != tt.code {
				t.Fatalf("exit code %d (%v), want %d: %q", got, err, tt.code, said)
			}
			if tt.code == exitGood {
				r.must(exitGood, r.create()...)
				return
			}
			r.mustBe(before)
		})
	}
}

// readUntil reads a terminal until it shows a text.
func readUntil(t *testing.T, person *os.File, text string) string {
	t.Helper()
	if err := person.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	buf := make([]byte, 4096)
	for !strings.Contains(said.String(), text) {
		n, err := person.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("waiting for %q: %v after %q", text, err, said.String())
		}
	}
	return said.String()
}
