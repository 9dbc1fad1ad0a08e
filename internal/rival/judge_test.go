// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pollux/internal/bench"
)

// A run that its deadline ended says so, and not that it was killed.
func TestDeadlineIsTold(t *testing.T) {
	path := newFile(t)
	fakeFio(t, "exec sleep 60")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, fmt.Errorf("%w did not end within a moment", ErrFio))
	defer cancel()
	start := time.Now()
	_, err := Run(ctx, []string{path}, bench.Job{RW: bench.RandRead, Runtime: time.Second}, false)
	if !errors.Is(err, ErrFio) || !strings.Contains(err.Error(), "did not end within a moment") || strings.Contains(err.Error(), "kill") {
		t.Error(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
}
