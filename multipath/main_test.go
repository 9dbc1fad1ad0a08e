// SPDX-License-Identifier: Apache-2.0

package multipath_test

import (
	"testing"

	"pollux/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
