// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package multipath

// ownErrnos are Linux's: elsewhere no drive is opened.
var ownErrnos []error
