// SPDX-License-Identifier: Apache-2.0

// Package fio reads workloads in fio's language: lists of options as on fio's command
// line, and job files. It opens no device and runs nothing.
//
// Options are taken in order. Those before the first name are defaults of all jobs;
// each name begins a job, and what follows is its own. The name "global" begins
// defaults for the jobs after it, as a [global] section does.
//
// An option that pollux has is understood as fio does. One that cannot matter here, as
// pollux does what it asks for anyway or has nothing of the kind, is ignored and
// listed. Everything else is refused by its name: a run that silently left out what was
// asked for would measure something else.
package fio
