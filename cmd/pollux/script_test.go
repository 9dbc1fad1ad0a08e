// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the commands that the scripts in testdata run.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"pollux": main,
		"code":   codeCommand,
		"json":   jsonCommand,
		"poke":   pokeCommand,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			// Built with -race every program would sleep for a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			// The drives of the machine are nothing to the scripts.
			env.Setenv(devicesVariable, "*.img")
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"oneline": oneLineCommand,
		},
	})
}

// codeCommand runs a command and succeeds if it exits with the code given:
//
//	exec code 3 pollux bench ...
func codeCommand() {
	want, err := strconv.Atoi(os.Args[1])
	exitIf(err)
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		exitIf(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != want {
		exitIf(fmt.Errorf("exit code %d, want %d", got, want))
	}
}

// jsonCommand prints what the file has at a path of keys and indexes, or with a
// fourth and fifth argument checks it:
//
//	exec json out jobs/0/read/total_ios
//	exec json out jobs/0/read/total_ios > 0
func jsonCommand() {
	data, err := os.ReadFile(os.Args[1])
	exitIf(err)
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber() // sizes as they are written
	exitIf(decoder.Decode(&value))
	for _, key := range strings.Split(os.Args[2], "/") {
		switch v := value.(type) {
		case map[string]any:
			inner, ok := v[key]
			if !ok {
				exitIf(fmt.Errorf("there is no %q in %s", key, os.Args[2]))
			}
			value = inner
		case []any:
			if key == "length" {
				value = len(v)
				continue
			}
			i, err := strconv.Atoi(key)
			exitIf(err)
			if i >= len(v) {
				exitIf(fmt.Errorf("%s: there are only %d", os.Args[2], len(v)))
			}
			value = v[i]
		default:
			exitIf(fmt.Errorf("%q of %s is in %v", key, os.Args[2], value))
		}
	}
	fmt.Println(value)
	if len(os.Args) == 3 {
		return
	}
	want, good := os.Args[4], false
	switch os.Args[3] {
	case "=":
		good = fmt.Sprint(value) == want
	case ">":
		number, err := strconv.ParseFloat(fmt.Sprint(value), 64)
		exitIf(err)
		limit, err := strconv.ParseFloat(want, 64)
		exitIf(err)
		good = number > limit
	}
	if !good {
		exitIf(fmt.Errorf("%s is %v, want %s %s", os.Args[2], value, os.Args[3], want))
	}
}

// pokeCommand inverts a byte of a file: poke FILE OFFSET.
func pokeCommand() {
	f, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
	exitIf(err)
	offset, err := strconv.ParseInt(os.Args[2], 10, 64)
	exitIf(err)
	b := make([]byte, 1)
	_, err = f.ReadAt(b, offset)
	exitIf(err)
	b[0] ^= 0xff
	_, err = f.WriteAt(b, offset)
	exitIf(err)
	exitIf(f.Close())
}

func exitIf(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// oneLineCommand fails unless the file, by default the last standard error, is
// one line that begins with the program's name.
func oneLineCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: oneline [file]")
	}
	file := "stderr"
	if len(args) == 1 {
		file = args[0]
	}
	text := ts.ReadFile(file)
	if strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "pollux: ") {
		ts.Fatalf("not one line of pollux: %q", text)
	}
}

// labScripts are those of the lab.
const labScripts = "testdata/lab"

// TestEveryScriptIsRun: testscript takes only what ends in .txtar or .txt.
func TestEveryScriptIsRun(t *testing.T) {
	for _, dir := range []string{"testdata", labScripts} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); path != labScripts && filepath.Ext(path) != ".txtar" {
				t.Errorf("%s is no .txtar", path)
			}
		}
	}
}
