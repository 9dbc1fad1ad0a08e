// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	tests := []struct {
		in   string
		want int64 // 0: refused
	}{
		{"1", 1}, {"512", 512}, {"512b", 512}, {"4k", 4096}, {"4K", 4096}, {"4kb", 4096}, {"64KiB", 64 << 10}, {"64ki", 64 << 10},
		{"1m", 1 << 20}, {"2MiB", 2 << 20}, {"3g", 3 << 30}, {"1GiB", 1 << 30}, {"1t", 1 << 40}, {"1p", 1 << 50},
		{"9223372036854775807", math.MaxInt64}, {"8191p", 8191 << 50}, {"004k", 4096},
		{"", 0}, {"k", 0}, {"0", 0}, {"0k", 0}, {"-1", 0}, {"-4k", 0}, {"+4k", 0}, {"4 k", 0}, {" 4k", 0}, {"4k ", 0},
		{"1.5g", 0}, {"1e3", 0}, {"0x10", 0}, {"4kk", 0}, {"4x", 0}, {"4\x00k", 0}, {"٤", 0}, {"ſ", 0},
		{"9223372036854775808", 0}, {"8192p", 0}, {"9007199254740992k", 0}, {"99999999999999999999g", 0},
	}
	for _, tt := range tests {
		got, err := ParseSize(tt.in)
		if got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("ParseSize(%q) is %d, %v; want %d", tt.in, got, err, tt.want)
		}
	}
}

func TestFormatSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 1: "1", 512: "512", 1024: "1KiB", 1536: "1536", 4096: "4KiB", 64 << 10: "64KiB", 1 << 20: "1MiB", 3 << 30: "3GiB", -1: "-1",
		1 << 62: "4EiB",
	} {
		if got := FormatSize(n); got != want {
			t.Errorf("FormatSize(%d) is %q, want %q", n, got, want)
		}
	}
}

// FuzzParseSize: what is taken is positive, and FormatSize says it so that it
// is read the same again.
func FuzzParseSize(f *testing.F) {
	for _, s := range []string{"4k", "64KiB", "9223372036854775807", "8192p", "-1", "", "1.5g"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := ParseSize(s)
		if err != nil {
			if n != 0 {
				t.Errorf("ParseSize(%q) is %d beside an error", s, n)
			}
			return
		}
		if n <= 0 {
			t.Fatalf("ParseSize(%q) is %d", s, n)
		}
		if again, err := ParseSize(FormatSize(n)); n < 1<<60 && (err != nil || again != n) {
			t.Errorf("%q is %d, which is written %s and read as %d, %v", s, n, FormatSize(n), again, err)
		}
	})
}

func TestParseRuntime(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration // 0: refused
	}{
		{"1", time.Second}, {"30", 30 * time.Second}, {"30s", 30 * time.Second}, {"500ms", 500 * time.Millisecond},
		{"2m", 2 * time.Minute}, {"1h", time.Hour}, {"1m30s", 90 * time.Second}, {"1.5s", 1500 * time.Millisecond}, {"250us", 250 * time.Microsecond},
		{"9223372036", 9223372036 * time.Second},
		{"", 0}, {"0", 0}, {"0s", 0}, {"-1", 0}, {"-1s", 0}, {"1.5", 0}, {"s", 0}, {"1x", 0}, {"1 s", 0}, {"10k", 0},
		{"9223372037", 0}, {"99999999999999999999", 0}, {"9999999999h", 0},
	}
	for _, tt := range tests {
		got, err := ParseRuntime(tt.in)
		if got != tt.want || (err == nil) != (tt.want != 0) {
			t.Errorf("ParseRuntime(%q) is %v, %v; want %v", tt.in, got, err, tt.want)
		}
	}
}

func FuzzParseRuntime(f *testing.F) {
	for _, s := range []string{"30", "500ms", "9223372037", "-1", "1h1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseRuntime(s); (err == nil) != (d > 0) {
			t.Errorf("ParseRuntime(%q) is %v, %v", s, d, err)
		}
	})
}

func TestParseRW(t *testing.T) {
	for rw := Read; rw <= RandRW; rw++ {
		if got, err := ParseRW(rw.String()); err != nil || got != rw {
			t.Errorf("ParseRW(%q) is %v, %v", rw, got, err)
		}
	}
	if got, err := ParseRW("rw"); err != nil || got != ReadWrite {
		t.Errorf("rw is %v, %v", got, err)
	}
	for _, s := range []string{"", "Read", "trim", "randread "} {
		if got, err := ParseRW(s); err == nil {
			t.Errorf("ParseRW(%q) is %v", s, got)
		}
	}
}
