// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"

	"pollux/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
