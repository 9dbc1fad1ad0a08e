// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// maxOutput is far more than what fio has to say.
	maxOutput = 16 << 20
	// pipeDelay is how long processes that fio left behind may keep its output open.
	pipeDelay = 2 * time.Second
)

// run runs a command and returns what it wrote. Afterwards no process of its group is
// left.
func run(ctx context.Context, argv []string) (stdout, stderr []byte, err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	var out, errs output
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	// A group of its own, since fio may fork.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != syscall.ESRCH {
			return err
		}
		return os.ErrProcessDone
	}
	cmd.Cancel = kill
	cmd.WaitDelay = pipeDelay
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	err = cmd.Wait()
	// For what fio has left behind. The kernel gives the number to no other group while
	// this one has a process, and when it has none not so soon.
	_ = kill()
	if out.full || errs.full {
		return nil, nil, errTooMuch
	}
	return out.buffer.Bytes(), errs.buffer.Bytes(), err
}

var errTooMuch = errors.New("its output does not end")

// output keeps what a process writes, up to a limit, at which it is cut off.
//
// The buffer is not embedded: its ReadFrom, which io.Copy would use, has no limit.
type output struct {
	buffer bytes.Buffer
	full   bool
}

func (o *output) Write(p []byte) (int, error) {
	if o.buffer.Len()+len(p) > maxOutput {
		o.full = true
		return 0, errTooMuch
	}
	return o.buffer.Write(p)
}
