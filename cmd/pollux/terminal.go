// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// isTerminal says that somebody sits at the other end of a stream.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// errNoAnswer ends a question that a signal or the end of the input has cut.
var errNoAnswer = errors.New("there was no answer")

// readLine reads what is answered, without blanks around it. A signal, which ends
// ctx, does not end a read; so the read is left behind.
func readLine(ctx context.Context, r io.Reader) (string, error) {
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := bufio.NewReader(r).ReadString('\n')
		answers <- answer{strings.TrimSpace(text), err}
	}()
	select {
	case a := <-answers:
		if a.err != nil {
			return "", errNoAnswer
		}
		return a.text, nil
	case <-ctx.Done():
		return "", errNoAnswer
	}
}
