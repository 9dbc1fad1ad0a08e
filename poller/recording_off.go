// SPDX-License-Identifier: Apache-2.0

//go:build nostats

package poller

const recording = false
