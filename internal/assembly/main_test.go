// SPDX-License-Identifier: Apache-2.0

package assembly

import (
	"testing"

	"pollux/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
